// The list of transfers, in a corner of every page from the first of them until it is closed, unless a page takes the
// `tray` into itself, where it stays `open`.

import { loaded } from "./api.js";
import { button, iconButton } from "./controls.js";
import { confirmDialog } from "./dialogs.js";
import { append, el, focusOn, nameText, replace } from "./dom.js";
import { formatBytes, formatClock, formatDuration, formatNumber } from "./format.js";
import { files as fileTexts } from "./texts/files.js";
import { dismiss, isActive, transferChanged, transfers } from "./transfers.js";
import { minutesLeft, pause } from "./uploads.js";

const t = fileTexts.transfers;
/** Milliseconds after which the list folds where all went well. Pointing at it or focusing it keeps it. */
const STAY = 5000;
/** Bytes for which each upload counts beside its own: small files take time too. */
const WEIGHT = 256 * 1024;
/** The rows by their transfers: `{ element, update() }`; and what stands above those that failed, by their reasons. */
const rows = new Map();
const heads = new Map();
const list = el("ul", { class: "tray-list", id: "transfers", tabindex: "0", "aria-label": t.title });
const wait = el("p", { class: "note is-warn", hidden: true });
const toggle = el("button", { type: "button", class: "tray-toggle", "aria-controls": "transfers" });
const said = el("p", { class: "visually-hidden", role: "status" });
const clear = button("", { kind: "quiet", act: () => dismiss(someActive() ? listed().filter(isActive) : listed()) });
export const tray = el("section", { class: "tray", "aria-label": t.title, hidden: true },
  el("div", { class: "tray-head" }, toggle, clear), wait, list);

let isBusy = false;
let folding = null;

document.body.append(tray, said); // what is read out is there before it has a text
toggle.addEventListener("click", () => open(toggle.getAttribute("aria-expanded") !== "true"));
open(false);
// Nothing has to stay under the list: `pages.css` leaves as much room below the page as it takes there. Where its head
// is in the column of the menu, that is the height of the list alone.
const measure = new ResizeObserver(() => {
  const covering = getComputedStyle(list).position === "fixed" ? list : tray;
  document.documentElement.style.setProperty("--tray", `${covering.offsetHeight}px`);
});
for (const each of [tray, list]) measure.observe(each);
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

export function open(isOpen) {
  toggle.setAttribute("aria-expanded", String(isOpen));
  list.hidden = !isOpen;
}

/** Folds the list after a while, unless something in it is not done, or is worth a decision. */
function foldLater() {
  clearTimeout(folding);
  folding = setTimeout(() => {
    const isQuiet = listed().every(({ state, older }) => state === "done" && !older);
    if (!isQuiet || tray.parentNode !== document.body) return undefined;
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
    if (transfer.state === "failed" && innerWidth > 860) open(true);
  }
  drawFailures();
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
  const minutes = active ? minutesLeft() : 0;
  replace(toggle, (active ? t.summary : t.finished)({ done: formatNumber(done), all: formatNumber(all.length) }),
    failed > 0 && el("span", { class: "form-error" }, t.failures({ failed: formatNumber(failed) })),
    active && ` · ${partOf(good, WEIGHT)}`,
    minutes > 1 && ` · ${t.left({ time: formatDuration(minutes < 90 ? minutes : Math.round(minutes / 60) * 60) })}`);
  clear.querySelector(".button-text").textContent = active ? t.cancel_all : t.clear;
  wait.hidden = !pause;
  const sentence = pause ? (pause.isLimit ? t.limited : t.away)({ time: formatClock(pause.until) }) : "";
  if (wait.textContent !== sentence) wait.textContent = sentence;
  // Only what matters is read out: that the queue waits, and that all is done.
  if (sentence) said.textContent = sentence;
  else if (active !== isBusy || !all.length) said.textContent = active || !all.length ? "" : toggle.textContent;
  if (isBusy && !active) foldLater();
  if (active !== isBusy && (active ? innerWidth > 860 : failed)) open(true);
  if (active !== isBusy && failed) list.scrollTop = 0;
  isBusy = active;
}

/** How many percent of the bytes of these transfers have been moved, where an upload has `more` than its own. */
function partOf(given, more = 0) {
  const bytesOf = ({ kind, size }) => size + (kind === "upload" ? more : 0);
  const movedOf = (transfer) => (transfer.state === "done" ? bytesOf(transfer) : transfer.moved);
  const sum = (of) => given.reduce((total, transfer) => total + of(transfer), 0);
  return percent.format(sum(bytesOf) ? sum(movedOf) / sum(bytesOf) : 0);
}
const percent = new Intl.NumberFormat(undefined, { style: "percent" });

function rowOf(transfer) {
  const name = el("span", { class: "tray-name cut" });
  const state = el("span", { class: "tray-state" });
  const bar = el("progress", { max: 1, value: 0, "aria-label": t.progress({ name: transfer.name }) });
  const end = iconButton("", "close", { act: () => dismiss([transfer]) });
  const same = el("p", { class: "tray-same", hidden: true }, t.same, button(t.replace, { kind: "quiet",
    "aria-label": t.replace_name({ name: transfer.name }), act: () => replaceOlder(transfer) }));
  const element = el("li", { class: "tray-row" }, name, end, state, bar, same);
  let shown = "";
  const update = () => {
    const { kind, size, moved, status, file } = transfer;
    const figures = { size: formatBytes(size), part: partOf([transfer]), kind };
    const isOffline = transfer.isBroken && transfer.state === "waiting";
    state.textContent = status ?? t.states[isOffline ? "offline" : transfer.state](figures);
    bar.value = size ? moved / size : 0;
    if (!transfer.older && same.contains(document.activeElement)) end.focus();
    same.hidden = !transfer.older;
    if (shown === transfer.state) return;
    const wasFailed = shown === "failed";
    shown = transfer.state;
    if (wasFailed || shown === "failed") drawFailures();
    state.hidden = shown === "failed" && !status;
    const isFree = !heads.size && !list.matches(":hover, :focus-within");
    if (shown === "running" && isFree) list.scrollTop = element.offsetTop;
    const label = (isActive(transfer) ? t.cancel : t.dismiss)({ name: transfer.name });
    Object.assign(end, { title: label, ariaLabel: label });
    bar.hidden = shown !== "running";
    const link = file?.id && shown === "done" && el("a", { class: "cut", href: `/console/files/${file.id}` });
    replace(name, link ? append(link, nameText(file.filename)) : nameText(transfer.name));
  };
  update();
  return { element, update };
}

/** What has failed comes before all others, below its reason, which those that met the same one share. */
function drawFailures() {
  const all = listed().filter((transfer) => rows.has(transfer));
  const failed = Map.groupBy(all.filter(({ state }) => state === "failed"), (transfer) =>
    (typeof transfer.error === "string" ? transfer.error : transfer));
  for (const reason of heads.keys()) if (!failed.has(reason)) heads.delete(reason);
  const elementOf = (transfer) => rows.get(transfer).element;
  const first = [...failed].map(([reason, group]) => [headOf(reason, group), group.map(elementOf)]);
  /** @type {any} */
  const focused = list.contains(document.activeElement) && document.activeElement;
  replace(list, first, all.filter(({ state }) => state !== "failed").map(elementOf));
  if (focused) (focused.checkVisibility() ? focused : toggle).focus();
  if (first.length && !list.matches(":hover, :focus-within")) list.scrollTop = 0;
}

/** A reason with a button that tries again all that failed for it, where it can be tried. */
function headOf(reason, group) {
  const head = heads.get(reason) ?? { group, element: el("li", { class: "tray-row tray-reason" },
    el("p", { class: "field-error" }), button(t.again, { kind: "quiet", act: () => {
      for (const transfer of head.group) if (transfer.again) transfer.again();
    } })) };
  heads.set(reason, Object.assign(head, { group }));
  const [words, again] = head.element.children;
  replace(words, group[0].error);
  again.hidden = !group.some((transfer) => transfer.again);
  return head.element;
}

/** Deletes the older one of two files of the same name. */
async function replaceOlder(transfer) {
  const { act } = await loaded(import("./file-actions.js"));
  if (await act("delete", [transfer.older])) transferChanged(Object.assign(transfer, { older: null }));
}
