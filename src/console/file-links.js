// Links to a file, to several at once or to a folder, and those by which others send files into one: making them,
// copying them, and showing them once.

import { ApiError, currentUser, post, service } from "./api.js";
import { button, copy, copyButton } from "./controls.js";
import { dialog, formDialog } from "./dialogs.js";
import { el, icon, nameText } from "./dom.js";
import { whatOf } from "./file-actions.js";
import { isPicture } from "./file-type.js";
import { formatBytes, formatDateTime } from "./format.js";
import { field } from "./forms.js";
import { notify } from "./frame.js";
import { qrPicture } from "./qr.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.links;
const u = oneFile.upload_links;
/** The longest life of a link, in minutes. */
const LONGEST = 43_200;
/** The choice of a life that is none of the usual ones. */
const OTHER = "other";
/** Pixels of the widest picture in a dialog on a screen of 320. */
const WIDEST = 232;

/**
 * Makes one link to some files, or to a folder, as the person wishes, copies it, and shows it. Answers whether it has.
 * A folder is `{ folder, filename }` without an `id`.
 */
export const share = (files) => makeAndShow(() => askForLink(files));

/** Does the same with a link by which others send files into a folder. */
export const receive = (folder) => makeAndShow(() => askForUploads(folder));

async function makeAndShow(make) {
  const owner = currentUser().id;
  const made = await make();
  if (!made || currentUser()?.id !== owner) return false;
  if (made.isCopied) sayCopied(made);
  else await showLink(made);
  return true;
}

/** Says that a link has been copied, which is all that most want, and offers to show it. */
function sayCopied(made) {
  const { name, page, until } = made;
  const show = button(t.show, { kind: "quiet", on: { click: () => showLink(made) } });
  notify([icon("check"), " ", nameText(name), t.copied_of({ until })], {
    action: [shareButton({ title: name, url: page }, "quiet"), show] });
}

/** What a link is to, as the texts call it: `file`, `files` or `folder`. */
const kindOf = ([{ id }, ...others]) => (others.length > 0 ? "files" : id ? "file" : "folder");

/** The fields for how long a link works. Answers `{ fields, minutes(values) }`. */
function lifeFields() {
  const amount = field({ name: "amount", label: t.amount, type: "number", value: 7, min: 1, step: 1, required: true,
    names: ["expires_in_minutes"], isHidden: true });
  const unit = field({ name: "unit", label: t.unit, type: "select", options: t.units, value: "1440", required: true,
    isHidden: true });
  const life = field({ name: "life", label: t.life, type: "select", options: t.lives, value: "10080", required: true });
  life.input.addEventListener("change", () => [amount, unit].forEach((each) => each.show(life.value() === OTHER)));
  const minutes = (values) => {
    const wanted = values.life === OTHER ? Math.round(values.amount * values.unit) : Number(values.life);
    const isPossible = wanted >= 1 && wanted <= LONGEST;
    if (!isPossible) throw new ApiError({ status: 422, fields: { amount: t.out_of_range } });
    return wanted;
  };
  return { fields: [life, amount, unit], minutes };
}

function askForLink(files) {
  const kind = kindOf(files);
  const { fields, minutes } = lifeFields();
  return formDialog([t.make_title, " ", nameText(whatOf("link", files))], {
    text: t.make_texts[kind],
    fields: [
      ...fields,
      { name: "inline", label: t.inline[kind], type: "checkbox", hint: t.inline_hint, value: files.every(isPicture) },
    ],
    label: t.copy_new,
    busy: t.making,
    submit: async ({ inline, ...life }) =>
      copied(await makeLink(files, { expires_in_minutes: minutes(life), inline, qr: true })),
  });
}

const copied = async (made) => ({ ...made, isCopied: await copy(made.page, document.activeElement) });

function askForUploads({ folder, filename }) {
  const { fields, minutes } = lifeFields();
  const { storage_quota: quota } = currentUser().stats ?? {};
  return formDialog([u.title, folder !== "/" && [u.title_in, nameText(filename)]], {
    text: u.text,
    fields: [
      { name: "note", label: u.note, type: "textarea", hint: u.note_hint, maxlength: 1000 },
      ...fields,
      { name: "max_files", label: u.max_files, type: "number", value: 100, min: 1, max: 1000, required: true },
      { name: "bytes", label: u.bytes, type: "number", min: 0, step: "any", names: ["max_bytes"], optional: false,
        placeholder: u.no_limit },
      { name: "bytes_unit", label: u.unit, type: "select", options: u.units, required: true },
      service.passwordResets ? { name: "notify", label: u.notify, type: "checkbox", hint: u.notify_hint, value: true }
        : el("p", { class: "field-hint" }, u.no_mail),
    ],
    label: t.copy_new,
    busy: t.making,
    submit: async ({ note, max_files, bytes, bytes_unit, notify: isTold = false, ...life }) => {
      const max_bytes = bytes === null ? undefined : Math.round(bytes * bytes_unit);
      if (max_bytes > quota) {
        throw new ApiError({ status: 422, fields: { bytes: u.too_much({ quota: formatBytes(quota) }) } });
      }
      const link = await post("/links", { upload_to: folder, expires_in_minutes: minutes(life), note, max_files,
        max_bytes, notify: isTold, qr: true }).catch((error) => {
        throw error.status === 403 ? new ApiError({ status: 403, detail: u.too_young }) : error;
      });
      return copied(shownOf(link, "upload", filename));
    },
  });
}

async function makeLink(files, wishes) {
  const kind = kindOf(files);
  const [{ id, folder }] = files;
  const link = kind === "file" ? await post(`/uploads/${id}/links`, wishes)
    : await post("/links", { ...wishes, ...(kind === "files" ? { files: files.map((file) => file.id) } : { folder }) });
  return shownOf(link, kind, whatOf("link", files));
}

/** What `showLink` shows of the API's answer about a new link. */
function shownOf({ url, named_url: named, expires_at: until, qr_svg: qr }, kind, name) {
  const page = `${location.origin}/console/${kind === "upload" ? "send" : "link"}#${url.split("/").at(-1)}`;
  return { kind, name, page, direct: named && location.origin + named, until: formatDateTime(until), qr };
}

/**
 * Shows the addresses of a new link. They are not closed by accident where the first has not been copied; then its text
 * is selected.
 */
function showLink({ kind, name, page, direct, until, qr, isCopied }) {
  const sign = isCopied && el("p", { class: "copied" }, el("span", { class: "copied-sign" }, icon("check")),
    t.copied({ until }));
  const box = dialog(t.made_title, [
    sign || el("p", {}, t.made({ until })),
    addressField({ ...t.page, ...(kind === "upload" && { hint: u.page_hint }) }, page, isCopied ? "button" : "input"),
    qr && el("p", {}, qrPicture(qr, t.qr, WIDEST)),
    direct && el("details", { class: "more" }, el("summary", {}, t.programs),
      addressField(kind === "file" ? t.file : t.zip, direct)),
    el("div", { class: "dialog-actions" }, shareButton({ title: name, url: page }),
      button(t.done, { kind: "primary", act: () => box.close() })),
  ], { keep: !isCopied, wide: true });
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
