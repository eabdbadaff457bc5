// Links to files: making them, for one file or several at once, copying them, and showing them once.

import { ApiError, currentUser, post } from "./api.js";
import { button, copy, copyButton } from "./controls.js";
import { dialog, formDialog } from "./dialogs.js";
import { el, icon, nameText, replace } from "./dom.js";
import { patiently, problemsOf } from "./file-actions.js";
import { isPicture } from "./file-type.js";
import { formatClock, formatDateTime, formatNumber } from "./format.js";
import { field } from "./forms.js";
import { notify } from "./frame.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.links;
/** The longest life of a link, in minutes. */
const LONGEST = 43_200;
/** The choice of a life that is none of the usual ones. */
const OTHER = "other";

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
  if (files.length > 1) await showLinks(made);
  else if (made.isCopied) sayCopied(made);
  else await showLink(made);
  return true;
}

/** Says that a link has been copied, which is all that most want, and offers to show it. */
function sayCopied(made) {
  const [{ file, page, until }] = made.links;
  const show = button(t.show, { kind: "quiet", on: { click: () => showLink(made) } });
  notify([icon("check"), " ", nameText(file.filename), t.copied_of({ until })], {
    action: [shareButton({ title: file.filename, url: page }, "quiet"), show] });
}

function askForLinks(files, made, signal) {
  const amount = field({ name: "amount", label: t.amount, type: "number", value: 7, min: 1, step: 1, required: true,
    names: ["expires_in_minutes"], isHidden: true });
  const unit = field({ name: "unit", label: t.unit, type: "select", options: t.units, value: "1440", required: true,
    isHidden: true });
  const life = field({ name: "life", label: t.life, type: "select", options: t.lives, value: "10080", required: true });
  life.input.addEventListener("change", () => [amount, unit].forEach((each) => each.show(life.value() === OTHER)));
  const said = el("p", { class: "small soft", role: "status" });
  const title = files.length === 1 ? [t.make_title, " ", nameText(files[0].filename)]
    : t.make_many({ count: formatNumber(files.length) });
  return formDialog(title, {
    text: t.make_text,
    fields: [
      life, amount, unit,
      { name: "inline", label: t.inline, type: "checkbox", hint: t.inline_hint, value: files.every(isPicture) },
      said,
    ],
    label: t.copy_new,
    busy: t.making,
    submit: async (values) => {
      const { inline } = values;
      const minutes = values.life === OTHER ? Math.round(values.amount * values.unit) : Number(values.life);
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
 * Shows the addresses of a new link. They are not closed by accident where the first has not been copied; then its text
 * is selected.
 */
function showLink({ links, isCopied }) {
  const [{ file, page, direct, until }] = links;
  return showMade(t.made_title, [
    isCopied ? copiedText(t.copied({ until })) : el("p", {}, t.made({ until })),
    addressField(t.page, page, isCopied ? "button" : "input"),
    el("details", { class: "more" }, el("summary", {}, t.programs), addressField(t.file, direct)),
  ], { shared: { title: file.filename, url: page }, keep: !isCopied });
}

const copiedText = (text) => el("p", { class: "copied" }, el("span", { class: "copied-sign" }, icon("check")), text);

/** The same of several, which are one text. */
function showLinks({ links, failed, isCopied }) {
  const text = textOf(links);
  const { element, input } = field({ name: "links", label: t.list, type: "textarea", value: text, readonly: true,
    optional: false, rows: Math.min(12, links.length * 3), wrap: "off" });
  input.addEventListener("focus", () => {
    input.select();
    requestAnimationFrame(() => { input.scrollTop = 0; });
  });
  const until = links[0]?.until;
  return showMade(t.made_titles({ n: links.length, count: formatNumber(links.length) }), [
    until && (isCopied ? copiedText(t.all_copied({ until })) : el("p", {}, t.all_made({ until }))),
    until && [element, el("p", {}, copyButton(text, t.copy_all, { kind: isCopied ? "" : "primary" }))],
    failed.length > 0 && el("div", { class: "error-box" }, el("p", {}, t.failed), problemsOf(failed)),
  ], { shared: until && { text }, keep: true });
}

/** A dialog with new links, of which `shared` is what can be handed to another app, if there is any. */
function showMade(title, content, { shared, keep }) {
  const box = dialog(title, [content, el("div", { class: "dialog-actions" }, shareButton(shared),
    button(t.done, { kind: "primary", act: () => box.close() }))], { keep, wide: true });
  return box.result;
}

/** On phones, a button that hands something to another app. */
function shareButton(shared, kind = "") {
  const handOn = () => navigator.share(shared).catch((error) => { if (error.name !== "AbortError") throw error; });
  return navigator.canShare?.(shared) && button(t.share, { kind, act: handOn });
}

/** An address of this service with a button that copies it. `focused` says which of the two gets the focus, if any. */
function addressField({ label, hint, copy: words }, value, focused = "") {
  const { element, input } = field({ name: "address", label, value, hint, readonly: true, optional: false,
    "data-focus": focused === "input" });
  input.addEventListener("focus", () => input.select());
  input.after(copyButton(value, words, { "data-focus": focused === "button" }));
  return element;
}
