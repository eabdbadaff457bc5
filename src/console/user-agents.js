// User agents in words that people know. Everything may claim to be anything, so this is a help for reading only.

import { el, nameText } from "./dom.js";
import { texts } from "./texts.js";

/** @type {[RegExp, string][]} The first that is found names the browser: later ones are named in its text too. */
const BROWSERS = [
  [/\bEdgA?(?:iOS)?\/(\d+)/, "Edge"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\bSamsungBrowser\/(\d+)/, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS|Chromium)\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\w+ )?Safari\//, "Safari"],
];
/** @type {[RegExp, string][]} */
const SYSTEMS = [[/\biPhone\b/, "iPhone"], [/\biPad\b/, "iPad"], [/\bAndroid\b/, "Android"], [/\bWindows\b/, "Windows"],
  [/\bCrOS\b/, "ChromeOS"], [/\bMac OS X\b|\bMacintosh\b/, "macOS"], [/\bLinux\b|\bX11\b/, "Linux"]];
/** Characters of a text that is shown where no browser is recognised. */
const SHOWN = 80;

/** The name of a device by its `User-Agent`, such as "Firefox 132 on Linux". For a program it is the text, cut. */
export function deviceName(text) {
  const whole = (text ?? "").trim();
  if (!whole) return texts.unknown_device;
  const system = SYSTEMS.find(([pattern]) => pattern.test(whole))?.[1];
  for (const [pattern, name] of BROWSERS) {
    const version = whole.startsWith("Mozilla/5.0 (") && pattern.exec(whole)?.[1];
    if (version) return system ? texts.browser_on({ browser: `${name} ${version}`, system }) : `${name} ${version}`;
  }
  const characters = [...whole];
  return characters.length > SHOWN ? `${characters.slice(0, SHOWN).join("")}…` : whole;
}

/** The same as an element, which has the whole text below the pointer. */
export const deviceText = (text) => el("span", { title: text }, nameText(deviceName(text)));
