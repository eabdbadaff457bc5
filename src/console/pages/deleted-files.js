// The deleted files of the signed-in user: restoring them, and deleting them for good.

import { post, service } from "../api.js";
import { button, iconButton, pageHead } from "../controls.js";
import { formDialog } from "../dialogs.js";
import { el, focusOn, icon, nameText, replace } from "../dom.js";
import { act } from "../file-actions.js";
import { fileList, momentCell, nameCell } from "../file-list.js";
import { formatBytes, formatNumber, localTime, utcTime } from "../format.js";
import { notify } from "../frame.js";
import { wayBack } from "../router.js";
import { files as fileTexts } from "../texts/files.js";

const t = fileTexts.deleted;

export function show(context) {
  const left = el("div", { role: "status" });
  const many = button(t.many, { hidden: true, on: { click: () => restoreMany(left) } });
  const list = fileList(context, {
    words: t,
    query: { deleted: true },
    caption: t.caption,
    columns: COLUMNS,
    actions: ["restore", "purge"],
    sort: { by: "deleted_at", order: "desc" },
    listed: (isNone) => {
      const hadFocus = document.activeElement === many;
      many.hidden = isNone;
      if (isNone && hadFocus) focusOn();
    },
  });
  const back = el("p", { class: "back small" }, el("a", { href: wayBack("/console/files") }, icon("left"), t.back));
  const head = pageHead(t.title, { lead: t.lead(service), actions: [many] });
  return { element: el("div", {}, back, head, left, list.element), update: list.update };
}

const COLUMNS = [
  { label: fileTexts.list.name, main: true, sort: "filename", cell: (file) =>
    nameCell(file, undefined, undefined, file.folder !== "/" && nameText(file.folder)) },
  { label: fileTexts.list.size, sort: "file_size", align: "end", cell: ({ file_size: size }) => formatBytes(size) },
  { label: t.deleted_at, sort: "deleted_at", cell: ({ deleted_at: moment }) => momentCell(moment) },
  { label: t.until, cell: ({ restorable_until: moment }) => momentCell(moment) },
  { label: fileTexts.list.actions, hideLabel: true, cell: rowTools },
];

function rowTools(file) {
  const name = file.filename;
  return [
    button(t.restore, { kind: "quiet", busy: t.restoring, act: () => act("restore", [file]),
      "aria-label": t.restore_name({ name }), "data-key": `restore-${file.id}` }),
    iconButton(t.purge({ name }), "trash", { act: () => act("purge", [file]), "data-key": `purge-${file.id}` }),
  ];
}

/** Asks since when, and restores what was deleted since. `place` says what there was no room for. */
async function restoreMany(place) {
  /** @type {any} */
  let made;
  const answer = formDialog(t.many_title, (form) => {
    made = form;
    return {
      text: t.many_text,
      fields: [
        { name: "span", label: t.span, type: "select", options: t.spans, required: true },
        { name: "deleted_since", label: t.moment, type: "datetime-local", step: 1, required: true, isHidden: true,
          value: localTime(beginOf(60)) },
      ],
      label: t.many_label,
      busy: t.restoring,
      submit: ({ span, deleted_since: moment }) => restoreSince(utcTime(moment ?? beginOf(span))),
    };
  });
  const span = made().field("span");
  span.input.addEventListener("change", () => made().field("deleted_since").show(span.value() === "moment"));
  const done = await answer;
  if (!done) return;
  const { restored, left } = done;
  dispatchEvent(new CustomEvent("restored"));
  notify(t.many_done({ restored, count: formatNumber(restored) }));
  replace(place, left > 0 && el("p", { class: "note is-warn" }, t.left({ left, count: formatNumber(left) })));
}

/**
 * Restores what was deleted at a moment of the API or later, as far as there is room for it; answers how many files
 * it restored, and how many are `left`. The service restores many files in several requests.
 */
export async function restoreSince(moment) {
  let restored = 0;
  try {
    for (;;) {
      const answer = await post("/uploads/restore", { deleted_since: moment });
      restored += answer.restored;
      if (answer.left === 0 || answer.restored === 0) return { restored, left: answer.left };
    }
  } finally {
    dispatchEvent(new Event("files"));
  }
}

/** The moment since when a span of minutes lasts, or that before all others. */
const beginOf = (span) => (span === "any" ? 0 : Date.now() - span * 60_000);
