// The links of a file: the list, making one, showing it once, and ending it.

import { del, get, post } from "./api.js";
import { button, copyButton, load, section, skeleton } from "./controls.js";
import { confirmDialog, dialog, formDialog } from "./dialogs.js";
import { el } from "./dom.js";
import { ApiError } from "./errors.js";
import { formatDateTime, formatRelative, timeText } from "./format.js";
import { field } from "./forms.js";
import { notify } from "./notices.js";
import { table } from "./tables.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.links;
/** The longest life of a link, in minutes. */
const LONGEST = 43_200;

/** The part of a file's page about its links. */
export function linksSection(file, signal) {
  const path = `/uploads/${file.id}/links`;
  const place = el("div", {});
  const refresh = () => load(place, {
    signal,
    waiting: skeleton(3),
    work: () => get(path, {}, signal),
    show: ({ links }) => list.show(links),
  });
  const list = linksTable(async (link) => {
    if (!await endLink(`${path}/${link.id}`, link)) return;
    await refresh();
    make.focus();
  });
  const makeLink = async () => {
    const made = await askForLink(path);
    if (!made) return;
    refresh();
    await showLink(made);
  };
  const make = button(t.make, { drawing: "plus", on: { click: makeLink } });
  refresh();
  return section(t.title, { lead: t.lead, actions: [make] }, place);
}

function linksTable(end) {
  return table({
    caption: t.title,
    columns: [
      { label: t.expires, main: true,
        cell: ({ expires_at: until }) => [timeText(until), " (", timeText(until, formatRelative), ")"] },
      { label: t.created, cell: ({ created_at: made }) => timeText(made) },
      { label: t.mode, cell: ({ inline }) => (inline ? t.is_inline : t.is_saved) },
      { label: t.actions, hideLabel: true, cell: (link) => button(t.end, { kind: "quiet danger",
        on: { click: () => end(link) }, "aria-label": t.end_of({ until: formatDateTime(link.expires_at) }) }) },
    ],
    empty: { title: t.none_title, text: t.none },
  });
}

function askForLink(path) {
  return formDialog(t.make_title, {
    text: t.make_text,
    fields: [
      { name: "amount", label: t.amount, type: "number", value: 1, min: 1, step: 1, required: true,
        names: ["expires_in_minutes"] },
      { name: "unit", label: t.unit, type: "select", options: t.units, value: "1440", required: true },
      { name: "inline", label: t.inline, type: "checkbox", hint: t.inline_hint },
    ],
    label: t.make,
    busy: t.making,
    submit: ({ amount, unit, inline }) => {
      const minutes = Math.round(amount * unit);
      const isPossible = minutes >= 1 && minutes <= LONGEST;
      if (!isPossible) throw new ApiError({ status: 422, fields: { amount: t.out_of_range } });
      return post(path, { expires_in_minutes: minutes, inline });
    },
  });
}

/** Shows the addresses of a new link, the only time that anybody sees them. They are not closed by accident. */
function showLink({ url, expires_at: until }) {
  const token = url.split("/").at(-1);
  const done = button(t.done, { act: () => box.close() });
  const box = dialog(t.made_title, [
    el("p", {}, t.made({ until: formatDateTime(until) })),
    addressField(t.page, `/console/link#${token}`, { kind: "primary", "data-focus": "" }),
    addressField(t.file, url),
    el("div", { class: "dialog-actions" }, done),
  ], { keep: true, wide: true });
  return box.result;
}

/** An address of this service with a button that copies it, for whose options see `button`. */
function addressField({ label, hint, copy }, path, options) {
  const value = location.origin + path;
  const { element, input } = field({ name: "address", label, value, hint, readonly: true, optional: false });
  input.addEventListener("focus", () => input.select());
  input.after(copyButton(value, copy, options));
  return element;
}

function endLink(path, { expires_at: expiry }) {
  const until = formatDateTime(expiry);
  return confirmDialog(t.end_title, t.end_text({ until }), {
    label: t.end_label,
    busy: t.ending,
    danger: true,
    act: async () => {
      await del(path).catch((error) => {
        if (error.reason !== "LINK_NOT_FOUND") throw error;
      });
      notify(t.ended);
    },
  });
}
