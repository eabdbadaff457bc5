// What stands around each page: the skip link, the navigation, notices, and the place of the page itself.

import { currentUser, hasSession, isAdmin, signOut } from "./api.js";
import { button } from "./controls.js";
import { mayLeave } from "./dialogs.js";
import { el, icon, nameText, replace } from "./dom.js";
import { noticePlace, notify } from "./notices.js";
import { texts } from "./texts.js";

/** Holds the brand and the heading of some pages already, which stay until a page is shown. */
const place = /** @type {any} */ (document.getElementById("page"));
const side = el("header", { class: "side" });
const frame = el("div", { class: "frame" }, side, noticePlace, place);

/** Whose navigation is drawn, as JSON. */
let drawn = null;

const ENTRIES = [
  { name: "files", href: "/console/files" },
  { name: "links", drawing: "link", href: "/console/links" },
  { name: "account", href: "/console/account" },
];
const ADMIN_ENTRIES = [
  { name: "users", href: "/console/users" },
  { name: "stats", href: "/console/stats" },
  { name: "audit", href: "/console/audit" },
];

/** Whether what is dragged are files. */
export const hasFiles = (event) => Boolean(event.dataTransfer?.types.includes("Files"));

/** Where no page takes it, a dropped file is ignored. The browser would show it in place of the console. */
for (const type of ["dragover", "drop"]) {
  addEventListener(type, (/** @type {DragEvent} */ event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
}

/** Signs out. A listener of `signout` may prevent that, ask the person, and call the event's `detail` to go on. */
export async function leave() {
  if (!(await mayLeave())) return;
  if (dispatchEvent(new CustomEvent("signout", { cancelable: true, detail: endSession }))) await endSession();
}

async function endSession() {
  const isTold = await signOut();
  if (!isTold) notify(texts.main.signed_out_here);
}

/** Puts the frame into the document. */
export function buildFrame() {
  const skip = el("a", { class: "skip", href: "#page" }, texts.frame.skip);
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    (place.querySelector("h1") ?? place).focus();
  });
  document.body.replaceChildren(skip, frame);
  addEventListener("session", () => drawSide());
  side.addEventListener("click", (event) => event.target.closest("a") && showMenu(false));
  side.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !side.classList.contains("is-open")) return;
    showMenu(false);
    side.querySelector(".menu-button").focus();
  });
  document.body.classList.toggle("has-side", hasSession());
}

/** Draws the navigation anew where it would show something else than it does. */
function drawSide() {
  const user = currentUser();
  const { id, name, username, email, role } = user ?? {};
  const wanted = JSON.stringify([id, name, username, email, role]);
  document.body.classList.toggle("has-side", Boolean(user));
  if (drawn === wanted) return;
  drawn = wanted;
  replace(side);
  if (!user) return;
  const toggle = button(texts.frame.menu, { kind: "quiet menu-button", drawing: "menu", "aria-expanded": "false",
    "aria-controls": "menu" });
  toggle.addEventListener("click", () => showMenu(toggle.getAttribute("aria-expanded") !== "true"));
  const nav = el("nav", { "aria-label": texts.frame.navigation }, group(ENTRIES),
    isAdmin() && [el("p", { class: "side-title", id: "admin-title" }, texts.frame.administration),
      group(ADMIN_ENTRIES, "admin-title")]);
  const who = el("div", { class: "who" },
    el("p", {}, el("span", { class: "who-name" }, nameText(user.name || user.username)),
      el("span", { class: "who-mail" }, nameText(user.email))),
    button(texts.frame.sign_out, { kind: "quiet", drawing: "out", act: leave, busy: texts.frame.signing_out }));
  replace(side, el("div", { class: "side-head" }, brand(), toggle), el("div", { class: "menu", id: "menu" }, nav, who));
  markSection(side.dataset.section);
}

function group(entries, labelledBy) {
  const links = entries.map(({ name, href, drawing = name }) => el("li", {},
    el("a", { href, data: { section: name } }, icon(drawing), texts.frame[name])));
  return el("ul", { class: "side-links", "aria-labelledby": labelledBy }, links);
}

function showMenu(isShown) {
  side.classList.toggle("is-open", isShown);
  side.querySelector(".menu-button")?.setAttribute("aria-expanded", String(isShown));
}

/** The name of the service with its mark. */
export function brand() {
  return el("a", { class: "brand", href: "/console" },
    el("span", { class: "brand-mark" }, icon("hanger")), texts.frame.service);
}

/** Marks the entry of the navigation that the page belongs to. */
function markSection(name) {
  side.dataset.section = name ?? "";
  for (const link of side.querySelectorAll("[data-section]")) {
    const isHere = link.pathname === location.pathname;
    if (link.dataset.section === name) link.setAttribute("aria-current", isHere ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
}

/**
 * Shows a page, names it in the title of the tab, and moves the focus to its heading unless `focus` is false. Then
 * there is an event `page`.
 */
export function showPage(element, /** @type {any} */ { section, isBare = false, focus = true }) {
  showMenu(false);
  markSection(section);
  document.body.classList.toggle("is-bare", isBare);
  replace(place, element);
  const heading = place.querySelector("h1");
  setTitle(heading?.textContent ?? "");
  const first = place.querySelector("[data-focus]");
  if (first) first.focus();
  else if (focus) (heading ?? place).focus({ preventScroll: true });
  dispatchEvent(new Event("page"));
}

/** Names the page in the title of the tab, as when the name of a file has been loaded. */
export function setTitle(text) {
  document.title = text ? `${text} · ${texts.frame.service}` : texts.frame.service;
}
