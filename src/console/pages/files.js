// The files of the signed-in user: the list, where uploads begin, and how much room there is.

import { currentUser, get, loaded, service, setCurrentUser } from "../api.js";
import { button, buttonLink, iconButton, pageHead } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { takeUploads } from "../drops.js";
import { act, patiently } from "../file-actions.js";
import { fileList, isFiltered, momentCell, nameCell } from "../file-list.js";
import { hasPreview } from "../file-type.js";
import { folderLink, folderOf, folderPlace, join, newFolder, takeMoves, whole } from "../folders.js";
import { formatBytes, formatNumber } from "../format.js";
import { typeName } from "../texts/file-types.js";
import { files as fileTexts } from "../texts/files.js";
import { addUploads } from "../uploads.js";
import { thumbnailOf } from "../view.js";

const t = fileTexts.list;
const listOf = new Intl.ListFormat("en", { type: "conjunction" });

export function show(context) {
  const { files: chooser, tree: trees } = takeUploads(addFiles, context.leaving);
  const choose = () => chooser.click();
  const room = el("div", { class: "room" });
  const upload = button(t.upload, { kind: "primary", drawing: "upload", act: choose });
  const folders = folderPlace(context.leaving);
  const list = fileList(context, {
    words: { ...t, none: t.none({ types: listOf.format(service.types.map((type) => typeName(type))),
      limit: formatBytes(service.fileBytes) }) },
    lead: room,
    above: folders.list,
    caption: t.caption,
    columns: COLUMNS,
    actions: ["link", "download", "zip", "move", "publish", "hide", "delete"],
    sort: { by: "upload_date", order: "desc" },
    action: () => button(t.upload, { kind: "primary", drawing: "upload", act: choose }),
    listed: (isNone) => { upload.hidden = isNone; },
    refreshed: () => {
      folders.refresh();
      showRoom(room, context.leaving);
    },
    where: (query) => whereOf(folderOf(query), isFiltered(query)),
    mayBeNone: () => folderOf() === "/" && !(currentUser()?.stats?.total_uploads > 0),
  });
  showRoom(room, context.leaving);
  const more = "webkitdirectory" in trees
    && button(t.folder, { kind: "quiet upload-folder", act: () => trees.click() });
  const deleted = service.trashDays > 0 && buttonLink(t.deleted, "/console/files/deleted", { kind: "quiet" });
  const fresh = button(fileTexts.folders.new, { kind: "quiet", on: { click: newFolder } });
  const ask = button(t.ask, { kind: "quiet", on: { click: askForFiles } });
  const head = pageHead(t.title, { actions: [deleted, fresh, ask, more, upload] });
  const content = el("div", { class: "with-tree" }, folders.tree, el("div", {}, folders.way, list.element));
  const filesOf = (target) => {
    const file = fileOf.get(target.closest?.("tr")?.querySelector("th a"));
    const selected = list.selected();
    return !file || selected.some(({ id }) => id === file.id) ? selected : [file];
  };
  takeMoves(content, filesOf, context.leaving);
  folders.show(context);
  const update = (next) => {
    folders.show(next);
    return list.update(next);
  };
  return { element: el("div", {}, head, chooser, trees, content), update };
}

/** What is listed: what lies in a folder, and of what is searched also what lies below it. */
const whereOf = (folder, isSearch) => (!isSearch ? { folder } : folder === "/" ? {} : { below: folder });

/** Makes a link by which others send files into the present folder. */
const askForFiles = async () => (await loaded(import("../file-links.js"))).receive(whole(folderOf())[0]);

/** Uploads files into the present folder, those that lie in `folders` below it; answers how many found no place. */
function addFiles(files, folders) {
  const present = folderOf();
  return addUploads(files, (file) => (folders.get(file) ?? []).reduce(join, present));
}

const COLUMNS = [
  { label: t.name, main: true, sort: "filename", cell: linkedName },
  { label: t.size, sort: "file_size", align: "end", cell: ({ file_size: size }) => formatBytes(size) },
  { label: t.uploaded, sort: "upload_date", cell: ({ upload_date: moment }) => momentCell(moment) },
  { label: t.actions, hideLabel: true, cell: rowTools },
];

/** The files of the list by the links of their names. */
const fileOf = new WeakMap();

function linkedName(file) {
  const byKey = (event) => {
    const work = { " ": () => look(file), F2: () => act("rename", [file]) }[event.key];
    if (!work) return;
    event.preventDefault();
    if (!event.repeat) work();
  };
  const link = el("a", { href: `/console/files/${file.id}`, "data-key": `name-${file.id}`,
    on: { keydown: byKey } });
  fileOf.set(link, file);
  const isElsewhere = file.isFound && file.folder !== "/";
  return nameCell(file, link, thumbnailOf(file), isElsewhere && folderLink(file.folder, nameText(file.folder)));
}

/** Shows what a file holds, and those around it in the list. */
async function look(file) {
  const files = [...document.querySelectorAll(".files-list tbody th a")].map((link) => fileOf.get(link));
  const { previewDialog } = await loaded(import("../preview.js"));
  previewDialog(files, files.indexOf(file));
}

function rowTools(file) {
  const tool = (name, drawing, action) => iconButton(t[name]({ name: file.filename }), drawing,
    { act: action, "data-key": `${name}-${file.id}` });
  const actions = Object.entries({ rename: "pencil", link: "link", download: "download", delete: "trash" });
  return [
    hasPreview(file) && tool("look", "look", () => look(file)),
    actions.map(([name, drawing]) => tool(name, drawing, () => act(name, [file]))),
  ];
}

/** Ends the latest question for the room, whose answer would be out of date. */
let latest = new AbortController();

/** Shows how many files there are, and how much room they take. */
async function showRoom(place, leaving) {
  latest.abort();
  latest = new AbortController();
  const signal = AbortSignal.any([leaving, latest.signal]);
  const user = await patiently(() => get("/users/me", {}, signal), signal).catch(() => null);
  if (!user || signal.aborted) return;
  setCurrentUser(user); // the one that is kept over reloads may be an old one
  const { total_uploads: files, total_storage_used: bytes, storage_quota: quota } = user.stats;
  const shown = `${files} ${bytes} ${quota}`;
  if (place.dataset.shown === shown) return;
  place.dataset.shown = shown;
  const part = quota > 0 ? Math.min(1, bytes / quota) : 1;
  replace(place,
    el("p", {}, t.used_of({ files, count: formatNumber(files), used: formatBytes(bytes), quota: formatBytes(quota) })),
    files > 0 && el("meter", { value: part, high: 0.9, "aria-label": t.meter }));
}
