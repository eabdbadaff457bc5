// The list of transfers, in a corner of every page from the first of them until it is closed.

import { button, iconButton } from "./controls.js";
import { confirmDialog } from "./dialogs.js";
import { append, el, focusOn, nameText, replace } from "./dom.js";
import { act } from "./file-actions.js";
import { formatBytes, formatClock, formatNumber } from "./format.js";
import { texts } from "./texts.js";
import { dismiss, isActive, transferChanged, transfers } from "./transfers.js";
import { pause } from "./uploads.js";

const t = texts.files.transfers;
/** Milliseconds after which the list folds where all went well. Pointing at it or focusing it keeps it. */
const STAY = 5000;
/** The rows by their transfers: `{ element, update() }`. */
const rows = new Map();
const list = el("ul", { class: "tray-list", id: "transfers", tabindex: "0", "aria-label": t.title });
const wait = el("p", { class: "note is-warn", hidden: true });
const toggle = el("button", { type: "button", class: "tray-toggle", "aria-controls": "transfers" });
const said = el("p", { class: "visually-hidden", role: "status" });
const clear = button("", { kind: "quiet", act: () => dismiss(someActive() ? listed().filter(isActive) : listed()) });
const tray = el("section", { class: "tray", "aria-label": t.title, hidden: true },
  el("div", { class: "tray-head" }, toggle, clear), wait, list);

let isBusy = false;
let folding = null;

document.body.append(tray, said); // what is read out is there before it has a text
toggle.addEventListener("click", () => open(toggle.getAttribute("aria-expanded") !== "true"));
open(false);
// Nothing has to stay under the list: `pages.css` leaves as much room below the page as the list takes.
new ResizeObserver(() => document.documentElement.style.setProperty("--tray", `${tray.offsetHeight}px`)).observe(tray);
addEventListener("keydown", ({ key }) => {
  if (key !== "Escape" || tray.hidden || list.hidden || document.querySelector("dialog[open]")) return;
  if (list.contains(document.activeElement)) toggle.focus();
  open(false);
});
/** Where all is done, nothing of it stays on the next page. */
addEventListener("page", () => {
  if (listed().every(({ state }) => state === "done")) dismiss(listed());
});
addEventListener("transfers", (/** @type {CustomEvent} */ { detail: transfer }) => {
  if (transfer) rows.get(transfer)?.update();
  else drawList();
  drawHead();
});

/** Unfinished transfers end with the session, so signing out asks. */
addEventListener("signout", (/** @type {CustomEvent} */ event) => {
  const left = transfers.filter(isActive).length;
  if (left === 0) return;
  event.preventDefault();
  const act = () => {
    dismiss(transfers);
    return event.detail();
  };
  confirmDialog(t.leave_title, t.leave_text({ left }), { label: t.leave, busy: t.leaving, danger: true, act });
});

const listed = () => transfers.filter(({ isHidden }) => !isHidden);
const someActive = () => listed().some(isActive);

function open(isOpen) {
  toggle.setAttribute("aria-expanded", String(isOpen));
  list.hidden = !isOpen;
}

/** Folds the list after a while, unless something in it is not done, or is worth a decision. */
function foldLater() {
  clearTimeout(folding);
  folding = setTimeout(() => {
    if (!listed().every(({ state, older }) => state === "done" && !older)) return undefined;
    if (tray.matches(":hover, :focus-within")) return foldLater();
    return open(false);
  }, STAY);
}

/** Adds the rows of new transfers and removes those of dismissed ones, with the focus on what comes after them. */
function drawList() {
  for (const [transfer, row] of rows) {
    if (transfers.includes(transfer)) continue;
    const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
    const hadFocus = row.element.contains(document.activeElement);
    row.element.remove();
    rows.delete(transfer);
    if (hadFocus) (next?.querySelector(".icon-only") ?? toggle).focus();
  }
  for (const transfer of listed()) {
    if (rows.has(transfer)) continue;
    const row = rowOf(transfer);
    rows.set(transfer, row);
    list.append(row.element);
    if (transfer.state !== "failed") continue;
    putFirst(row.element);
    if (innerWidth > 860) open(true);
  }
  const hadFocus = tray.contains(document.activeElement);
  tray.hidden = listed().length === 0;
  document.documentElement.classList.toggle("has-tray", !tray.hidden);
  if (tray.hidden && hadFocus) focusOn();
}

function drawHead() {
  const all = listed();
  const good = all.filter(({ state }) => state !== "failed");
  const done = good.filter(({ state }) => state === "done").length;
  const failed = all.length - good.length;
  const active = someActive();
  const figures = { done: formatNumber(done), failed: failed && formatNumber(failed), all: formatNumber(all.length),
    part: partOf(good) };
  replace(toggle, (active ? t.summary : t.finished)(figures));
  clear.querySelector(".button-text").textContent = active ? t.cancel_all : t.clear;
  wait.hidden = !pause;
  const sentence = pause ? (pause.isLimit ? t.limited : t.away)({ time: formatClock(pause.until) }) : "";
  if (wait.textContent !== sentence) wait.textContent = sentence;
  // Only what matters is read out: that the queue waits, and that all is done.
  if (sentence) said.textContent = sentence;
  else if (active !== isBusy || !all.length) said.textContent = active || !all.length ? "" : t.finished(figures);
  if (isBusy && !active) foldLater();
  if (active && !isBusy && innerWidth > 860) open(true);
  isBusy = active;
}

/** How many percent of the bytes of these transfers have been moved. */
function partOf(given) {
  const sum = (field) => given.reduce((total, transfer) => total + transfer[field], 0);
  return percent.format(sum("size") ? sum("moved") / sum("size") : 0);
}
const percent = new Intl.NumberFormat(undefined, { style: "percent" });

function rowOf(transfer) {
  const name = el("span", { class: "tray-name cut" });
  const state = el("span", { class: "tray-state" });
  const bar = el("progress", { max: 1, value: 0, "aria-label": t.progress({ name: transfer.name }) });
  const problem = el("p", { class: "field-error" });
  const again = button(t.again, { kind: "quiet", act: () => transfer.again() });
  const end = iconButton("", "close", { act: () => dismiss([transfer]) });
  const same = el("p", { class: "tray-same", hidden: true }, t.same, button(t.replace, { kind: "quiet",
    "aria-label": t.replace_name({ name: transfer.name }), act: () => replaceOlder(transfer) }));
  const element = el("li", { class: "tray-row" }, name, again, end, state, bar, problem, same);
  let shown = "";
  const update = () => {
    const { kind, size, moved, status, error, file } = transfer;
    const figures = { size: formatBytes(size), part: partOf([transfer]), kind };
    state.textContent = status ?? t.states[transfer.state](figures);
    bar.value = size ? moved / size : 0;
    if (!transfer.older && same.contains(document.activeElement)) end.focus();
    same.hidden = !transfer.older;
    if (shown === transfer.state) return;
    shown = transfer.state;
    if (shown === "failed") putFirst(element);
    if (shown === "running" && !list.matches(":hover, :focus-within")) list.scrollTop = element.offsetTop;
    const label = (isActive(transfer) ? t.cancel : t.dismiss)({ name: transfer.name });
    Object.assign(end, { title: label, ariaLabel: label });
    bar.hidden = shown !== "running";
    replace(problem, shown === "failed" && error);
    const hadFocus = document.activeElement === again;
    again.hidden = shown !== "failed" || !transfer.again;
    if (hadFocus && again.hidden) end.focus();
    const link = file && shown === "done" && el("a", { class: "cut", href: `/console/files/${file.id}` });
    replace(name, link ? append(link, nameText(file.filename)) : nameText(transfer.name));
  };
  update();
  return { element, update };
}

/** What has failed comes before all others, where it is seen without a search. */
function putFirst(element) {
  element.classList.add("is-failed");
  /** @type {any} */
  const focused = element.contains(document.activeElement) && document.activeElement;
  if (list.contains(element)) list.insertBefore(element, list.querySelector(":scope > :not(.is-failed)"));
  if (focused) focused.focus();
  if (!list.matches(":hover, :focus-within")) list.scrollTop = 0;
}

/** Deletes the older one of two files of the same name. */
async function replaceOlder(transfer) {
  if (await act("delete", [transfer.older])) transferChanged(Object.assign(transfer, { older: null }));
}
