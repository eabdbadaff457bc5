// The links of the signed-in user that work: all of them, which can be searched and ended together, or those to a file.

import { get } from "../api.js";
import { button, buttonLink, load, pageHead, section } from "../controls.js";
import { el, nameText } from "../dom.js";
import { act } from "../file-actions.js";
import { formatBytes, formatDateTime, formatHour, formatNumber, formatUntil, timeText } from "../format.js";
import { query } from "../router.js";
import { selection } from "../selection.js";
import { filters, table } from "../tables.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.links;
const words = oneFile.all_links;

/** A link with what it leads to as its name: that of its file, how many there are, or the path of its folder. */
const named = (link) => ({ ...link, filename: link.filename ?? link.folder ?? link.upload_to
  ?? t.files({ n: link.files, count: formatNumber(link.files) }) });

/** The columns, the name of the file first. */
const COLUMNS = [
  { label: t.of_file, main: true, cell: ({ file_id: id, filename, note, ...link }) => {
    const folder = link.folder ?? link.upload_to;
    const href = id ? `/console/files/${id}` : `/console/files?${new URLSearchParams({ folder })}`;
    return [el(id || folder ? "a" : "span", { class: "clamp", ...((id || folder) && { href }) }, nameText(filename)),
      note && el("span", { class: "file-description cut" }, nameText(note))];
  } },
  { label: t.expires, cell: ({ expires_at: until }) => el("span", {}, el("span", { class: "nowrap" }, timeText(until)),
    " ", el("span", { class: "nowrap" }, "(", timeText(until, formatUntil), ")")) },
  { label: t.used, cell: ({ last_used_at: used }) => timeText(used, formatHour)
    ?? el("span", { class: "soft" }, t.unused) },
  { label: t.mode, cell: (link) => (link.upload_to ? receivedBy(link) : link.inline ? t.is_inline : t.is_saved) },
  { label: t.actions, hideLabel: true, cell: (link) => button(t.end, { kind: "quiet danger",
    "aria-label": t.end_of({ name: link.filename, until: formatDateTime(link.expires_at) }),
    "data-key": `end-${link.id}`, on: { click: () => act("end", [link]) } }) },
];

/** What has come by a link by which others send files. */
function receivedBy({ received_files: files, max_files: most, received_bytes: bytes, max_bytes: mostBytes }) {
  return t.received({ files: formatNumber(files), n: most, most: formatNumber(most), bytes: formatBytes(bytes),
    most_bytes: formatBytes(mostBytes) });
}

/**
 * A list of the links that `isShown(link)` takes, which follows what is done here; the rest are options of `table`.
 * `shown(links, all)` is told what is drawn. Answers `{ element, refresh() }`.
 */
function linkList(/** @type {any} */ { rows, isShown, shown = () => {}, ...options }, signal) {
  const element = el("div", { class: "brief-list links-list" });
  const list = table({ keeps: true, ...options });
  const refresh = () => load(element, {
    signal,
    waiting: list.waiting(rows),
    work: () => get("/links", {}, signal),
    show: ({ links }) => {
      const some = links.map(named).filter(isShown);
      list.show(some);
      shown(some, links);
      return list.element;
    },
  });
  for (const type of ["files", "links"]) addEventListener(type, refresh, { signal });
  refresh();
  return { element, refresh };
}

/** The part of a file's page about its links. */
export function linksSection(file, signal) {
  const [, expires, ...others] = COLUMNS;
  const { element } = linkList({ caption: t.title, empty: { title: "", text: t.none_title }, rows: 3,
    columns: [{ ...expires, main: true }, ...others], isShown: ({ file_id: id }) => id === file.id }, signal);
  return section(t.title, { lead: t.lead }, element);
}

export function show(context) {
  const form = filters({ label: words.search, fields: [
    { name: "search", label: words.search, type: "search", placeholder: words.search_hint, isWide: true }] });
  const tools = el("div", { class: "list-tools" }, form.element);
  const selected = selection({ tools, actions: ["end"] });
  const search = () => (query().get("search") ?? "").toLowerCase();
  const none = { title: t.none_title, text: words.none, action: buttonLink(words.to_files, "/console/files") };
  const { element, refresh } = linkList({
    caption: words.caption,
    empty: () => (search() ? { title: words.nothing_title, text: words.nothing } : none),
    columns: [selected.column, ...COLUMNS],
    rows: 8,
    isShown: ({ filename, note }) => `${filename} ${note ?? ""}`.toLowerCase().includes(search()),
    shown: (links, all) => {
      form.element.hidden = all.length === 0;
      selected.show({ items: links, total: links.length });
    },
  }, context.leaving);
  const update = (next) => {
    form.set(next.query);
    return refresh();
  };
  form.set(context.query);
  return { element: el("div", {}, pageHead(t.title, { lead: words.lead }), tools, selected.bar, element), update };
}
