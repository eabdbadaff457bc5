// Links to files: making them, for one file or several at once, showing them once, and ending them.

import { ApiError, currentUser, del, get, post } from "./api.js";
import { button, copy, copyButton, load, section } from "./controls.js";
import { confirmDialog, dialog, formDialog } from "./dialogs.js";
import { el, nameText, replace } from "./dom.js";
import { patiently, problemsOf } from "./file-actions.js";
import { formatClock, formatDateTime, formatNumber, formatRelative, timeText } from "./format.js";
import { field } from "./forms.js";
import { notify } from "./frame.js";
import { table } from "./tables.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.links;
/** The longest life of a link, in minutes. */
const LONGEST = 43_200;

const columnsOf = (refresh) => [
  { label: t.of_file, main: true, cell: ({ file_id: id, filename }) =>
    el("a", { class: "clamp", href: `/console/files/${id}` }, nameText(filename)) },
  { label: t.expires, cell: ({ expires_at: until }) => el("span", {}, el("span", { class: "nowrap" }, timeText(until)),
    " ", el("span", { class: "nowrap" }, "(", timeText(until, formatRelative), ")")) },
  { label: t.used, cell: ({ last_used_at: used }) => timeText(used) ?? el("span", { class: "soft" }, t.unused) },
  { label: t.mode, cell: ({ inline }) => (inline ? t.is_inline : t.is_saved) },
  { label: t.actions, hideLabel: true, cell: (link) => button(t.end, { kind: "quiet danger",
    "aria-label": t.end_of({ name: link.filename, until: formatDateTime(link.expires_at) }),
    "data-key": `end-${link.id}`, on: { click: () => endLink(link, refresh) } }) },
];

/** A list of all links, or of those to one file. `empty` is as in `table`. Answers `{ element, refresh() }`. */
export function linkList(/** @type {any} */ { caption, empty, file }, signal) {
  const element = el("div", { class: "brief-list" });
  const refresh = () => load(element, {
    signal,
    waiting: list.waiting(file ? 3 : 8),
    work: () => get("/links", {}, signal),
    show: ({ links }) => list.show(links.filter(({ file_id: id }) => !file || id === file.id)),
  });
  const [name, expires, ...others] = columnsOf(refresh);
  const columns = file ? [{ ...expires, main: true }, ...others] : [name, expires, ...others];
  const list = table({ caption, columns, empty, keeps: true });
  refresh();
  return { element, refresh };
}

/** The part of a file's page about its links. */
export function linksSection(file, signal) {
  const empty = { title: "", text: t.none_title };
  const { element, refresh } = linkList({ caption: t.title, empty, file }, signal);
  const make = button(t.make, { drawing: "link", on: { click: async () => await share([file]) && refresh() } });
  return section(t.title, { lead: t.lead, actions: [make] }, element);
}

/** Makes a link to each of some files as the person wishes, copies them, and shows them. Answers whether it has. */
export async function share(files) {
  const owner = currentUser().id;
  const made = { links: [], failed: [], isCopied: false };
  const stop = new AbortController();
  const isDone = await askForLinks(files, made, stop.signal);
  stop.abort();
  if ((!isDone && !made.links.length) || currentUser()?.id !== owner) return false;
  const tried = new Set([...made.links, ...made.failed].map(({ file }) => file));
  for (const file of files) if (!tried.has(file)) made.failed.push({ file, reason: t.given_up });
  await (files.length === 1 ? showLink(made) : showLinks(made));
  return true;
}

function askForLinks(files, made, signal) {
  const said = el("p", { class: "small soft", role: "status" });
  const title = files.length === 1 ? [t.make_title, " ", nameText(files[0].filename)]
    : t.make_many({ count: formatNumber(files.length) });
  return formDialog(title, {
    text: t.make_text,
    fields: [
      { name: "amount", label: t.amount, type: "number", value: 7, min: 1, step: 1, required: true,
        names: ["expires_in_minutes"] },
      { name: "unit", label: t.unit, type: "select", options: t.units, value: "1440", required: true },
      { name: "inline", label: t.inline, type: "checkbox", hint: t.inline_hint },
      said,
    ],
    label: t.copy_new,
    busy: t.making,
    submit: async ({ amount, unit, inline }) => {
      const minutes = Math.round(amount * unit);
      const isPossible = minutes >= 1 && minutes <= LONGEST;
      if (!isPossible) throw new ApiError({ status: 422, fields: { amount: t.out_of_range } });
      await makeLinks(files, { expires_in_minutes: minutes, inline }, { made, said, signal });
      made.isCopied = made.links.length > 0 && await copy(textOf(made.links), document.activeElement);
      return true;
    },
  });
}

/** Makes the links one after the other. While those of several wait, which `said` says, the dialog may be closed. */
async function makeLinks(files, wishes, { made, said, signal }) {
  const wait = (until) => {
    const sentence = until && t.waits({ time: formatClock(until), done: formatNumber(made.links.length) });
    said.closest("dialog").querySelector("[type=submit]").toggleAttribute("data-goes-on", Boolean(until));
    replace(said, sentence);
  };
  for (const file of files) {
    const send = () => {
      wait(null);
      return post(`/uploads/${file.id}/links`, wishes);
    };
    try {
      const link = await (files.length === 1 ? send() : patiently(send, signal, wait));
      const { url, named_url: named, expires_at: until } = link;
      const page = `${location.origin}/console/link#${url.split("/").at(-1)}`;
      made.links.push({ file, page, direct: location.origin + named, until: formatDateTime(until) });
    } catch (error) {
      if (!(error instanceof ApiError) || files.length === 1) throw error;
      made.failed.push({ file, reason: error.message });
    }
  }
}

/** One link as it is, several below the names of their files. */
const textOf = (links) => (links.length === 1 ? links[0].page
  : links.map(({ file, page }) => `${file.filename}\n${page}\n`).join("\n"));

/**
 * Shows the addresses of a new link, the only time that anybody sees them. They are not closed by accident. Where the
 * first has not been copied, its text is selected.
 */
function showLink({ links, isCopied }) {
  const [{ file, page, direct, until }] = links;
  return showMade(t.made_title, [
    el("p", {}, (isCopied ? t.copied : t.made)({ until })),
    addressField(t.page, page, isCopied ? "button" : "input"),
    addressField(t.file, direct),
  ], { title: file.filename, url: page });
}

/** The same of several, which are one text. */
function showLinks({ links, failed, isCopied }) {
  const text = textOf(links);
  const { element, input } = field({ name: "links", label: t.list, type: "textarea", value: text, readonly: true,
    optional: false });
  input.addEventListener("focus", () => input.select());
  const until = links[0]?.until;
  return showMade(t.made_titles({ n: links.length, count: formatNumber(links.length) }), [
    until && el("p", {}, (isCopied ? t.all_copied : t.all_made)({ until })),
    until && [element, el("p", {}, copyButton(text, t.copy_all, { kind: isCopied ? "" : "primary" }))],
    failed.length > 0 && el("div", { class: "error-box" }, el("p", {}, t.failed), problemsOf(failed)),
  ], until && { text });
}

/** A dialog with new links. On phones they can be handed to another app; `shared` is what, if there are any. */
function showMade(title, content, shared) {
  const handOn = () => navigator.share(shared).catch((error) => { if (error.name !== "AbortError") throw error; });
  const box = dialog(title, [content, el("div", { class: "dialog-actions" },
    navigator.canShare?.(shared) && button(t.share, { kind: "primary", act: handOn }),
    button(t.done, { act: () => box.close() }))], { keep: true, wide: true });
  return box.result;
}

/** An address of this service with a button that copies it. `focused` says which of the two gets the focus, if any. */
function addressField({ label, hint, copy: words }, value, focused = "") {
  const { element, input } = field({ name: "address", label, value, hint, readonly: true, optional: false,
    "data-focus": focused === "input" });
  input.addEventListener("focus", () => input.select());
  input.after(copyButton(value, words, { "data-focus": focused === "button" }));
  return element;
}

/** Ends a link after a question, and shows its list anew. */
async function endLink({ id, file_id: file, filename, expires_at: expiry }, refresh) {
  const act = async () => {
    await del(`/uploads/${file}/links/${id}`).catch((error) => {
      if (error.reason !== "LINK_NOT_FOUND") throw error;
    });
    notify(t.ended);
  };
  const question = el("span", {}, nameText(filename), t.end_text({ until: formatDateTime(expiry) }));
  const options = { label: t.end_label, busy: t.ending, danger: true, act };
  if (await confirmDialog(t.end_title, question, options)) refresh();
}
