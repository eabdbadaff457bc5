// Links to a file, to several at once or to a folder: making them, copying them, and showing them once.

import { ApiError, currentUser, post } from "./api.js";
import { button, copy, copyButton } from "./controls.js";
import { dialog, formDialog } from "./dialogs.js";
import { el, icon, nameText } from "./dom.js";
import { whatOf } from "./file-actions.js";
import { isPicture } from "./file-type.js";
import { formatDateTime } from "./format.js";
import { field } from "./forms.js";
import { notify } from "./frame.js";
import { qrPicture } from "./qr.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.links;
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
export async function share(files) {
  const owner = currentUser().id;
  const made = await askForLink(files);
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

function askForLink(files) {
  const kind = kindOf(files);
  const amount = field({ name: "amount", label: t.amount, type: "number", value: 7, min: 1, step: 1, required: true,
    names: ["expires_in_minutes"], isHidden: true });
  const unit = field({ name: "unit", label: t.unit, type: "select", options: t.units, value: "1440", required: true,
    isHidden: true });
  const life = field({ name: "life", label: t.life, type: "select", options: t.lives, value: "10080", required: true });
  life.input.addEventListener("change", () => [amount, unit].forEach((each) => each.show(life.value() === OTHER)));
  return formDialog([t.make_title, " ", nameText(whatOf("link", files))], {
    text: t.make_texts[kind],
    fields: [
      life, amount, unit,
      { name: "inline", label: t.inline[kind], type: "checkbox", hint: t.inline_hint, value: files.every(isPicture) },
    ],
    label: t.copy_new,
    busy: t.making,
    submit: async (values) => {
      const minutes = values.life === OTHER ? Math.round(values.amount * values.unit) : Number(values.life);
      const isPossible = minutes >= 1 && minutes <= LONGEST;
      if (!isPossible) throw new ApiError({ status: 422, fields: { amount: t.out_of_range } });
      const made = await makeLink(files, { expires_in_minutes: minutes, inline: values.inline, qr: true });
      return { ...made, isCopied: await copy(made.page, document.activeElement) };
    },
  });
}

async function makeLink(files, wishes) {
  const kind = kindOf(files);
  const [{ id, folder }] = files;
  const link = kind === "file" ? await post(`/uploads/${id}/links`, wishes)
    : await post("/links", { ...wishes, ...(kind === "files" ? { files: files.map((file) => file.id) } : { folder }) });
  const { url, named_url: named, expires_at: until, qr_svg: qr } = link;
  const page = `${location.origin}/console/link#${url.split("/").at(-1)}`;
  return { kind, name: whatOf("link", files), page, direct: location.origin + named, until: formatDateTime(until), qr };
}

/**
 * Shows the addresses of a new link. They are not closed by accident where the first has not been copied; then its text
 * is selected.
 */
function showLink({ kind, name, page, direct, until, qr, isCopied }) {
  const copied = isCopied && el("p", { class: "copied" }, el("span", { class: "copied-sign" }, icon("check")),
    t.copied({ until }));
  const box = dialog(t.made_title, [
    copied || el("p", {}, t.made({ until })),
    addressField(t.page, page, isCopied ? "button" : "input"),
    qr && el("p", {}, qrPicture(qr, t.qr, WIDEST)),
    el("details", { class: "more" }, el("summary", {}, t.programs),
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
