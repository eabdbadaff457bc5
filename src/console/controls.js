// Buttons that say that they work, countdowns, errors in their place, and loading without jumps.

import { ApiError } from "./api.js";
import { el, hiddenText, icon, replace } from "./dom.js";
import { formatClock } from "./format.js";
import { texts } from "./texts.js";

/**
 * A button. `act` may be asynchronous: until it is done the button shows `busy`, keeps its width and the focus, and
 * cannot be pressed again. What `act` throws goes to `failed(error)`, without it to a notice. `kind`: `primary`,
 * `danger`, `quiet`, or none.
 */
export function button(label, options = {}) {
  const { act, kind = "", busy = texts.working, failed, drawing, type = "button", ...rest } = options;
  const text = el("span", { class: "button-text" }, label);
  const element = el("button", { type, class: `button ${kind}`, ...rest }, drawing && icon(drawing), text);
  if (act) {
    element.addEventListener("click", async (event) => {
      if (element.getAttribute("aria-disabled") === "true") return;
      let finish;
      try {
        const work = act(event);
        if (work instanceof Promise && !isBehindDialog(element)) finish = begin(element, busy);
        await work;
      } catch (error) {
        if (!failed) throw error;
        failed(error);
      } finally {
        finish?.();
      }
    });
  }
  return element;
}

/** Whether a dialog has come up above the element: then nobody can press it, and it need not say that it works. */
const isBehindDialog = (element) => [...document.querySelectorAll("dialog[open]")].at(-1)?.contains(element) === false;

/** Marks a button as busy; answers the function that ends this, or `null` where it is busy already. */
export function begin(element, busy = texts.working) {
  if (element.getAttribute("aria-disabled") === "true") return null;
  const text = element.querySelector(".button-text"); // one with a drawing only has none
  const before = text?.textContent;
  element.style.minWidth = `min(${element.offsetWidth}px, 100%)`;
  element.setAttribute("aria-disabled", "true");
  element.classList.add("is-busy");
  if (text) text.textContent = busy;
  return () => {
    element.removeAttribute("aria-disabled");
    element.classList.remove("is-busy");
    element.style.minWidth = "";
    if (text) text.textContent = before;
  };
}

/** A link that looks like a button. */
export const buttonLink = (label, href, /** @type {any} */ { kind = "", drawing, ...rest } = {}) =>
  el("a", { class: `button ${kind}`, href, ...rest }, drawing && icon(drawing), label);

/** A button with a drawing only; `label` is what screen readers say and what the pointer shows. */
export function iconButton(label, drawing, options = {}) {
  const element = button("", { kind: "quiet icon-only", ...options, drawing, title: label, "aria-label": label });
  element.querySelector(".button-text").remove();
  return element;
}

/** A button that copies a text and says so; `options` are those of `button`. */
export function copyButton(text, label = texts.copy, options = {}) {
  const element = button(label, { drawing: "copy", ...options });
  const caption = element.querySelector(".button-text");
  const said = el("span", { class: "visually-hidden", role: "status" });
  element.addEventListener("click", async () => {
    const answer = (await copy(text, element)) ? texts.copied : texts.not_copied;
    caption.textContent = answer;
    said.textContent = answer;
    setTimeout(() => {
      caption.textContent = label;
      said.textContent = "";
    }, 3000);
  });
  return el("span", { class: "copy" }, element, said);
}

/** Copies a text; without the clipboard, which browsers offer over HTTPS only, by way of a field beside `element`. */
export async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "visually-hidden", readonly: true }, text);
    element.after(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    element.focus();
    return isCopied;
  }
}

/**
 * The time until `moment` (milliseconds) counted down each second, for screen readers as a time of day. `ended` is
 * called once when it has come, unless the element has left the page before.
 */
export function countdown(moment, ended = () => {}) {
  const shown = el("span", { "aria-hidden": "true" });
  const element = el("span", { class: "countdown" }, shown, hiddenText(texts.at({ time: formatClock(moment) })));
  let wasShown = false;
  const tick = () => {
    const seconds = Math.ceil((moment - Date.now()) / 1000);
    if (wasShown && !element.isConnected) return clearInterval(timer);
    wasShown ||= element.isConnected;
    shown.textContent = texts.in_seconds({ seconds: Math.max(0, seconds) });
    if (seconds > 0) return undefined;
    clearInterval(timer);
    return ended();
  };
  const timer = setInterval(tick, 1000);
  tick();
  return element;
}

/**
 * An error as the parts of a paragraph, with the wait counted down, and with a way out where there is one. `ended` is
 * called when the wait is over; `isAutomatic` says that the next try comes by itself then.
 */
export function errorParts(error, /** @type {any} */ { ended, isAutomatic = false } = {}) {
  if (!(error instanceof ApiError)) {
    console.error(error);
    return [texts.errors.unknown];
  }
  const { message, reason, retryAt, status } = error;
  const needsFactor = reason === "ADMIN_SECOND_FACTOR_REQUIRED";
  return [message,
    retryAt && (isAutomatic || status !== 0)
      && [" ", isAutomatic ? texts.next_try : texts.try_again, " ", countdown(retryAt, ended), "."],
    needsFactor && [" ", el("a", { href: "/console/account/second-factor" }, texts.set_up_second_factor)],
  ];
}

/** A box that explains an error; `role="alert"` reads it out. With `again` it has a button for another try. */
export function errorBox(error, /** @type {any} */ { again } = {}) {
  const parts = errorParts(error, { ended: again, isAutomatic: Boolean(again) });
  const retry = again && button(texts.try_again, { act: again });
  return el("div", { class: "error-box", role: "alert" }, el("p", {}, parts), retry);
}

/** Grey lines of the height of what is being loaded. */
export function skeleton(lines = 3) {
  const list = Array.from({ length: lines }, () => el("div", { class: "skeleton-line" }));
  return el("div", { class: "skeleton", "aria-hidden": "true" }, list);
}

/** What stands where there is nothing yet: a title, a sentence that says what to do, and a button or link for it. */
export const emptyState = (title, text, action) =>
  el("div", { class: "empty" }, icon("hanger"), el("p", { class: "empty-title" }, title), text && el("p", {}, text),
    action);

/** Refusals that the same request meets again. */
const FINAL = [403, 404, 413, 422];
/** The latest `load` of each place. */
const newest = new WeakMap();

/**
 * Loads something into `place`: `work()` asks the API, `show(answer)` makes the nodes. Until then `place` shows
 * `waiting`, or stays as it is, under a bar that moves, where it shows something already. An error is explained there
 * with a button for another try, which also comes by itself when the wait is over. Nothing happens any more once
 * `signal` is aborted or the place is loaded again. Answers whether it has been shown.
 *
 * With `isSilent`, for what nobody has asked for, a place that shows something stays as it is meanwhile, and an error
 * is thrown, unless the person is waiting for the place already.
 */
export async function load(place, { work, show, signal, waiting = skeleton(), isSilent = false }) {
  const turn = {};
  newest.set(place, turn);
  const isOver = () => signal?.aborted || newest.get(place) !== turn;
  const isFirst = place.dataset.state !== "shown";
  const isSeen = !isSilent || isFirst || place.hasAttribute("aria-busy");
  if (isSeen) place.setAttribute("aria-busy", "true");
  if (isFirst) replace(place, waiting, hiddenText(texts.loading));
  place.classList.toggle("is-stale", isSeen && !isFirst);
  try {
    const answer = await work();
    if (isOver()) return false;
    place.dataset.state = "shown";
    replaceKeepingFocus(place, () => show(answer));
  } catch (error) {
    if (isOver() || error.name === "AbortError") return false;
    if (!isSeen) throw error;
    place.dataset.state = "failed";
    const again = () => (signal?.aborted ? false : load(place, { work, show, signal, waiting }));
    const isFinal = FINAL.includes(error.status);
    replaceKeepingFocus(place, () => errorBox(error, { again: isFinal ? undefined : again }));
    return false;
  } finally {
    if (!isOver()) {
      place.removeAttribute("aria-busy");
      place.classList.remove("is-stale");
    }
  }
  return true;
}

/**
 * Replaces what `place` holds by what `make()` answers. Where what had the focus goes, and `make()` has not moved the
 * focus on, it goes to what has the same `data-key` now, or else reads the same, if there was and is only one such
 * element (the button of another row would be the wrong one), or else to `place`.
 */
export function replaceKeepingFocus(place, make) {
  /** @type {any} */
  const before = place.contains(document.activeElement) ? document.activeElement : null;
  const { key } = before?.dataset ?? {};
  const isAlike = (each) => (key ? each.dataset.key === key : each.textContent === before.textContent);
  const alike = () => [...place.querySelectorAll(before.localName)].filter(isAlike);
  const wasOnly = before && alike().length === 1;
  replace(place, make());
  if (!before || document.activeElement !== document.body) return;
  const [same, ...others] = wasOnly ? alike() : [];
  if (same && !others.length) return same.focus({ preventScroll: true });
  place.setAttribute("tabindex", "-1");
  place.focus({ preventScroll: true });
}

/** The head of a page: its heading, which gets the focus when the page is shown, a line below it, and its buttons. */
export function pageHead(title, /** @type {any} */ { lead, actions = [] } = {}) {
  const heading = el("h1", { tabindex: "-1" }, title);
  const text = el("div", { class: "page-title" }, heading, lead && el("p", { class: "lead" }, lead));
  return el("header", { class: "page-head" }, text, el("div", { class: "actions" }, actions));
}

/** A part of a page with a heading of its own. */
export function section(title, /** @type {any} */ { lead, actions = [] } = {}, ...children) {
  const head = el("div", { class: "section-head" }, el("h2", {}, title), el("div", { class: "actions" }, actions));
  return el("section", { class: "section" }, head, lead && el("p", { class: "lead" }, lead), children);
}
