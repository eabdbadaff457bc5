// The folders of one's own files: where the list is, which folders are in that one, and moving files and folders. A
// folder is there while a file is in it, so a new one is only an address until then.

import { del, get, loaded, post } from "./api.js";
import { button, iconButton, load, replaceKeepingFocus } from "./controls.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { append, el, icon, isInField, nameText, replace, uniqueId } from "./dom.js";
import { ACTIONS, act, patiently } from "./file-actions.js";
import { field } from "./forms.js";
import { notify, takeAway } from "./frame.js";
import { query as currentQuery, setQuery, withQuery } from "./router.js";
import { files as fileTexts } from "./texts/files.js";

const t = fileTexts.folders;
/** Folders that are asked for at once. */
const LIMIT = 100;
/** Where there is room for the tree beside the list. */
const WIDE = matchMedia("(min-width: 1200px)");

/** The folder that an address names, as the API writes it: `/`, or `/a/b`. */
export const folderOf = (query = currentQuery()) => query.get("folder") || "/";
export const join = (folder, name) => `${folder === "/" ? "" : folder}/${name}`;
const parentOf = (folder) => folder.slice(0, folder.lastIndexOf("/")) || "/";
const nameOf = (folder) => (folder === "/" ? t.root : folder.slice(folder.lastIndexOf("/") + 1));
const changesFor = (folder) => ({ folder: folder === "/" ? null : folder, search: null, type: null, page: null });

/** A link to the list of a folder, on which files and folders can be dropped. */
export const folderLink = (folder, ...content) =>
  el("a", { href: withQuery(changesFor(folder)), "data-folder": folder, "data-key": `folder-${folder}` }, content);

const inside = (folder, options, signal = undefined) =>
  get("/folders", { in: folder, limit: LIMIT, ...options }, signal);

/**
 * What stands above the list of files: the way to its folder, and the folders in that. Answers
 * `{ way, list, tree, show({ query, signal }), refresh() }`, of which the first three are elements.
 */
export function folderPlace(leaving) {
  const way = el("nav", { class: "crumbs", "aria-label": t.way });
  const place = el("div", { class: "folders" });
  const tree = treeOf(leaving);
  let latest = null;
  const fill = async ({ query, signal }, isSilent = false) => {
    const folder = folderOf(query);
    const isSearch = query.has("search") || query.has("type");
    place.hidden = isSearch;
    if (isSearch) return;
    await load(place, { signal, isSilent, waiting: el("span"), work: () => inside(folder, {}, signal),
      show: (answer) => listOf(folder, answer) });
  };
  const show = (context) => {
    latest = context;
    const folder = folderOf(context.query);
    replace(way, crumbsOf(folder, context.query.has("search") || context.query.has("type")));
    tree.open(folder);
    fill(context);
  };
  const refresh = () => {
    tree.refresh();
    fill(latest, true).catch(() => {}); // the list of files says that it may be out of date
  };
  return { way, list: place, tree: tree.element, show, refresh };
}

/** A folder as one of the things that can be shared, and downloaded as one archive. */
export const whole = (folder) => [{ folder, filename: nameOf(folder) }];

/** The folders that lead to one, and where all that is searched can be found beside it, or what is done with it. */
function crumbsOf(folder, isSearch) {
  if (folder === "/") return [];
  const names = folder.slice(1).split("/");
  const paths = ["/", ...names.map((_, at) => `/${names.slice(0, at + 1).join("/")}`)];
  const steps = paths.map((path, at) => el("li", {}, at < names.length || isSearch
    ? folderLink(path, nameText(nameOf(path))) : el("span", { "aria-current": "page" }, nameText(nameOf(path)))));
  return [el("ol", {}, steps),
    isSearch ? el("a", { class: "button quiet", href: withQuery({ folder: null, page: null }) }, t.everywhere)
      : ["link", "zip"].map((name) => button(fileTexts.actions[name].label, { kind: "quiet",
        drawing: ACTIONS[name].drawing, on: { click: () => act(name, whole(folder)) } }))];
}

/** The folders of an answer, and a button for those after them. */
function listOf(parent, answer) {
  const list = el("ul", {});
  const add = ({ folders, next }) => {
    append(list, folders.map(({ folder, name }) => el("li", {}, folderLink(folder, icon("folder"), nameText(name)),
      el("span", { class: "tools" },
        iconButton(t.link_name({ name }), "link", { on: { click: () => act("link", whole(folder)) } }),
        iconButton(t.zip_name({ name }), "download", { on: { click: () => act("zip", whole(folder)) } }),
        iconButton(t.move_name({ name }), "pencil", { act: () => moveFolder(folder) }),
        iconButton(t.delete_name({ name }), "trash", { act: () => deleteFolder(folder) })))));
    return next && button(t.more, { kind: "quiet", act: async ({ target }) => {
      const more = add(await inside(parent, { after: next }));
      target.closest("button").replaceWith(more || "");
    } });
  };
  const more = add(answer);
  return answer.folders.length > 0 && [list, more];
}

/** All folders; those in one are asked for when it is opened. Answers `{ element, open(folder), refresh() }`. */
function treeOf(leaving) {
  const element = el("nav", { class: "tree", "aria-label": t.tree });
  const opened = new Set(["/"]);
  let here = "/";
  let turns = 0;
  const draw = async (folder) => {
    const { folders, next } = await inside(folder, {}, leaving);
    const items = await Promise.all(folders.map(async ({ folder: path, name }) => {
      const toggle = iconButton(t.open({ name }), "right", { "aria-expanded": String(opened.has(path)),
        "data-key": `open-${path}`, on: { click: () => {
          if (!opened.delete(path)) opened.add(path);
          refresh();
        } } });
      const link = folderLink(path, nameText(name));
      if (path === here) link.setAttribute("aria-current", "page");
      return el("li", {}, el("div", {}, toggle, link), opened.has(path) && await draw(path));
    }));
    return el("ul", {}, items, next && el("li", {}, folderLink(folder, "…")));
  };
  const refresh = async () => {
    if (!WIDE.matches) return;
    const turn = (turns += 1);
    const drawn = await draw("/").catch(() => null);
    if (!drawn || leaving.aborted || turn !== turns) return;
    replaceKeepingFocus(element, () => (drawn.childElementCount > 0 ? drawn : []));
  };
  const open = (folder) => {
    here = folder;
    for (let path = parentOf(folder); path !== "/"; path = parentOf(path)) opened.add(path);
    return refresh();
  };
  return { element, open, refresh };
}

/** Goes into a folder with a new name. */
export const newFolder = () => formDialog(t.new, { text: t.new_text, label: t.new_label,
  fields: [field({ name: "name", label: t.name, required: true, maxlength: 255, autocomplete: "off" })],
  submit: ({ name }) => setQuery(changesFor(join(folderOf(), name.replaceAll("/", " ").trim()))) });

/** A field for a folder, which suggests those of the one that has been typed so far. */
function folderField(name, value) {
  const known = el("datalist", { id: uniqueId("folders") });
  const made = field({ name, label: t.folder, hint: t.folder_hint, value, required: true, maxlength: 1000,
    autocomplete: "off", list: known.id });
  append(made.element, known);
  let asked = null;
  const suggest = async () => {
    const parent = parentOf(made.input.value);
    if (asked === parent || !parent.startsWith("/")) return;
    asked = parent;
    const { folders } = await inside(parent, {}).catch(() => ({ folders: [] }));
    if (asked === parent) replace(known, folders.map(({ folder }) => el("option", { value: folder })));
  };
  made.input.addEventListener("focus", suggest);
  made.input.addEventListener("input", suggest);
  return made;
}

/** Asks where files shall be. Answers them with that folder, `to`, or nothing. */
export async function askFolder(files) {
  const to = await formDialog(t.move, { label: t.move, fields: [folderField("folder", folderOf())],
    submit: ({ folder }) => folder });
  return to && files.map((file) => ({ ...file, to }));
}

/** Does what the service does with so many files at a time until none is left; answers with how many it was done. */
async function allOf(send) {
  for (let done = 0; ;) {
    const { moved, deleted, left } = await patiently(send, new AbortController().signal);
    done += moved ?? deleted;
    if (!left) return done;
  }
}

/** Moves or renames a folder, `to` where it is known already. */
async function moveFolder(from, to) {
  const send = ({ to: target }) => allOf(() => post("/folders/move", { from, to: target }));
  const { length } = from;
  const label = t.move;
  const moved = to ? await send({ to })
    : await formDialog(t.move_title, { label, fields: [folderField("to", from)], submit: send });
  if (!moved) return;
  dispatchEvent(new Event("files"));
  notify(t.moved({ name: nameOf(from) }));
  if (to && `${folderOf()}/`.startsWith(`${from}/`)) setQuery({ folder: to + folderOf().slice(length), page: null });
}

async function deleteFolder(folder) {
  const name = nameOf(folder);
  const send = () => allOf(() => del("/folders", { query: { folder } }));
  let count = 0;
  const isDone = await confirmDialog(t.delete_title({ name }), t.delete_text, { label: t.delete, danger: true,
    act: async () => { count = await send(); } });
  if (!isDone) return;
  dispatchEvent(new Event("files"));
  const notice = notify(t.deleted({ name, count }), { action: button(t.undo, { kind: "quiet", act: async () => {
    takeAway(notice);
    // The oldest of what was deleted just now says since when.
    const { items: [oldest] } = await get("/uploads", { deleted: true, below: folder, limit: 1, offset: count - 1 });
    const { restoreSince } = await loaded(import("./pages/deleted-files.js"));
    if (oldest) await restoreSince(oldest.deleted_at);
  } }) });
}

/** What is dragged, or was cut: `{ files }` or `{ folder }`. */
let dragged = null;
let cut = null;
addEventListener("person", () => { cut = null; }); // nothing is kept of one person for the next

function put({ files, folder }, to) {
  const moving = files?.filter((file) => file.folder !== to).map((file) => ({ ...file, to }));
  if (moving) return moving.length > 0 && act("move", moving);
  return parentOf(folder) !== to && !`${to}/`.startsWith(`${folder}/`) && moveFolder(folder, join(to, nameOf(folder)));
}

/**
 * Lets what is dragged in `element` be dropped on a folder there, and what was cut (Ctrl+X) be put where the list is
 * (Ctrl+V), until `leaving` is aborted. `filesOf(target)` are the files that an element stands for, or are selected.
 */
export function takeMoves(element, filesOf, leaving) {
  const targetOf = (event) => dragged && event.target.closest?.("[data-folder]");
  const mark = (target) => {
    for (const each of element.querySelectorAll(".is-target")) each.classList.remove("is-target");
    target?.classList.add("is-target");
  };
  const listen = (type, listener) => element.addEventListener(type, listener);
  listen("dragstart", ({ target }) => {
    const files = filesOf(target);
    dragged = files.length > 0 ? { files } : { folder: target.closest?.("[data-folder]")?.dataset.folder };
    if (!dragged.files && !dragged.folder) dragged = null;
  });
  listen("dragover", (event) => {
    const target = targetOf(event);
    if (target) event.preventDefault();
    mark(target);
  });
  listen("drop", (event) => {
    const target = targetOf(event);
    if (!target) return;
    event.preventDefault();
    put(dragged, target.dataset.folder);
  });
  listen("dragend", () => {
    dragged = null;
    mark(null);
  });
  addEventListener("keydown", ({ key, ctrlKey, metaKey, shiftKey, altKey }) => {
    if (!(ctrlKey || metaKey) || shiftKey || altKey || isInField() || document.querySelector("dialog[open]")) return;
    const files = key === "x" ? filesOf(document.activeElement) : [];
    if (files.length > 0) {
      cut = { files };
      notify(t.cut({ n: files.length }));
    } else if (key === "v" && cut) {
      put(cut, folderOf());
      cut = null;
    }
  }, { signal: leaving });
}
