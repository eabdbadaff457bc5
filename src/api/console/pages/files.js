// The files of the signed-in user: a list with search, type, order and pages in its address, and where uploads begin.

import { get } from "../api.js";
import { button, buttonLink, iconButton, load, pageHead } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { takeDrops } from "../drops.js";
import { deleteFile, downloadFile } from "../file-actions.js";
import { formatBytes, formatDateTime, formatNumber } from "../format.js";
import { field } from "../forms.js";
import { service } from "../limits.js";
import { notify } from "../notices.js";
import { query as currentQuery, setQuery, withQuery } from "../router.js";
import { asked, leaveEmptyPage, pager, table } from "../tables.js";
import { texts } from "../texts.js";
import { watchTransfers } from "../transfers.js";
import { addUploads } from "../uploads.js";
import "../tray.js";

const t = texts.files.list;
/** Files of a page. */
const SIZE = 25;
/** What the service can sort by, first what it does unless told. */
const SORTS = ["upload_date", "filename", "file_size"];
/** Milliseconds of rest in typing after which the search begins. */
const REST = 300;
/** Milliseconds in which uploads that end bring the list up to date once. */
const REFRESH = 1500;

export function show(context) {
  const chooser = el("input", { type: "file", multiple: true, hidden: true });
  const choose = () => chooser.click();
  chooser.addEventListener("change", () => {
    addFiles([...chooser.files]);
    chooser.value = "";
  });
  const list = filesTable(choose, () => refresh());
  const place = el("div", { class: "files-list" });
  const room = el("div", { class: "room" });
  let latest = context;
  const fill = ({ signal }, parameters) => load(place, {
    signal,
    waiting: list.waiting(10),
    work: () => get("/uploads", parameters, signal),
    show: (answer) => (leaveEmptyPage(answer) ? [...place.childNodes]
      : [list.show(answer.items), answer.total > 0 && pager(answer)]),
  });
  const bars = toolbar();
  const update = (next) => {
    latest = next;
    bars.update(next.query);
    fill(next, parametersOf(next.query));
  };
  const refresh = async () => {
    const focused = document.activeElement?.dataset.key;
    showRoom(room, context.leaving);
    await fill(latest, parametersOf(latest.query));
    if (focused && document.activeElement === document.body) {
      (place.querySelector(`[data-key="${focused}"]`) ?? document.querySelector("h1")).focus();
    }
  };
  refreshAfterUploads(refresh, context.leaving);
  takeDrops(addFiles, context.leaving);
  showRoom(room, context.leaving);
  update(context);
  const upload = button(t.upload, { kind: "primary", drawing: "upload", act: choose });
  const head = pageHead(t.title, { actions: [upload] });
  return { element: el("div", {}, head, room, chooser, bars.element, place), update };
}

function addFiles(files) {
  const left = addUploads(files);
  if (left) notify(t.too_many({ left }));
}

/** What the API is asked by an address. */
function parametersOf(query) {
  const list = asked(query, { sorts: SORTS, size: SIZE });
  return { ...list, search: query.get("search"), content_type: query.get("type") };
}

/** The fields for searching, which go by the address: what is typed changes it after a rest, and it changes them. */
function toolbar() {
  const search = field({ name: "search", label: t.search, type: "search", placeholder: t.search_hint, optional: false,
    autocomplete: "off" });
  const type = field({ name: "type", label: t.type, type: "select", options: [["", t.any_type]], optional: false });
  let timer = null;
  const apply = (options) => {
    clearTimeout(timer);
    const wanted = search.value();
    if (wanted !== (currentQuery().get("search") ?? "")) setQuery({ search: wanted, page: null }, options);
  };
  search.input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search.input.isConnected && apply({ replace: true }), REST);
  });
  type.input.addEventListener("change", () => setQuery({ type: type.value(), page: null }));
  search.element.classList.add("is-wide");
  const element = el("form", { class: "toolbar", role: "search", novalidate: true }, search.element, type.element);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  for (const one of service.types) {
    const isKnown = [...type.input.options].some(({ value }) => value === one);
    if (!isKnown) type.input.append(el("option", { value: one }, texts.files.type(one)));
  }
  const update = (query) => {
    const wanted = query.get("search") ?? "";
    if (search.value() !== wanted) search.set(wanted);
    if (query.get("type")) offer([query.get("type")]);
    type.set(query.get("type") ?? "");
  };
  return { element, update };
}

function filesTable(choose, refresh) {
  return table({
    caption: t.caption,
    columns: [
      { label: t.name, main: true, sort: "filename", cell: nameCell },
      { label: t.type, cell: ({ content_type: type }) => texts.files.type(type) },
      { label: t.size, sort: "file_size", align: "end", cell: ({ file_size: size }) => formatBytes(size) },
      { label: t.uploaded, sort: "upload_date", cell: ({ upload_date: date }) => uploadedCell(date) },
      { label: t.actions, hideLabel: true, cell: (file) => rowTools(file, refresh) },
    ],
    sort: { by: "upload_date", order: "desc" },
    empty: () => emptyTexts(choose),
  });
}

function nameCell(file) {
  return [
    el("a", { href: `/console/files/${file.id}`, data: { key: `name-${file.id}` } }, nameText(file.filename)),
    file.is_public && [" ", el("span", { class: "badge is-accent" }, t.public)],
    file.description && el("span", { class: "file-description cut", dir: "auto" }, file.description),
  ];
}

function uploadedCell(date) {
  return el("span", { class: "nowrap" }, formatDateTime(date));
}

function rowTools(file, refresh) {
  const name = file.filename;
  const remove = async () => {
    if (await deleteFile(file)) refresh();
  };
  return [
    iconButton(t.download({ name }), "download", { act: () => downloadFile(file), "data-key": `download-${file.id}` }),
    iconButton(t.delete({ name }), "trash", { on: { click: remove }, "data-key": `delete-${file.id}` }),
  ];
}

/** What an empty list says: there is nothing at all, or nothing that matches. */
function emptyTexts(choose) {
  const query = currentQuery();
  if (query.has("search") || query.has("type")) {
    const all = withQuery({ search: null, type: null, page: null });
    return { title: t.nothing_title, text: t.nothing, action: buttonLink(t.show_all, all) };
  }
  return { title: t.none_title, text: t.none, action: button(t.upload, { drawing: "upload", act: choose }) };
}

/** How often the room was asked for: an answer that is not to the latest question is out of date. */
let roomsAsked = 0;

/** Shows what the service takes, and how much room is left. */
async function showRoom(place, signal) {
  const turn = (roomsAsked += 1);
  const user = await get("/users/me", {}, signal).catch(() => null);
  if (signal.aborted || turn !== roomsAsked || !user) return;
  const { total_uploads: files, total_storage_used: bytes } = user.stats;
  const figures = { files, count: formatNumber(files), used: formatBytes(bytes) };
  const part = Math.min(1, bytes / service.userBytes);
  const types = service.types.map(texts.files.type).join(" · ");
  replace(place,
    el("p", {}, t.used_of({ ...figures, quota: formatBytes(service.userBytes) }), ", ",
      t.free({ free: formatBytes(Math.max(0, service.userBytes - bytes)) })),
    el("meter", { value: part, high: 0.9, "aria-label": t.meter }),
    el("p", {}, t.taken({ types, limit: formatBytes(service.fileBytes) })));
}

/** Brings the list up to date after uploads, once for those that end within a short while. */
function refreshAfterUploads(refresh, signal) {
  let timer = null;
  const stored = new Set();
  watchTransfers((transfer) => {
    const isNews = transfer?.kind === "upload" && transfer.state === "done" && !stored.has(transfer);
    if (!isNews) return;
    stored.add(transfer);
    timer ??= setTimeout(() => {
      timer = null;
      if (!signal.aborted) refresh();
    }, REFRESH);
  }, signal);
}
