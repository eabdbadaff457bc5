// Files and folders that are dropped on a page, or chosen.

import { currentUser, service } from "./api.js";
import { append, el, isInField } from "./dom.js";
import { formatBytes, formatNumber, localTime } from "./format.js";
import { hasFiles, notify } from "./frame.js";
import { files as fileTexts } from "./texts/files.js";
import { MAX_WAITING, readable } from "./uploads.js";

const t = fileTexts.list;
/** What operating systems keep in folders for themselves, in lower case. */
const SYSTEM_FILES = [".ds_store", "desktop.ini", "thumbs.db"];
/** Characters that no name of a folder may have. */
const UNUSUAL = /[\p{Cc}\p{Bidi_Control}]/gu;
/** Why a file is left out, by the status with which it would be refused. */
const REASONS = { 413: "large", 415: "type", 422: "unreadable" };

/**
 * Gives `add(files, folders)`, which answers how many found no place, what is chosen, or pasted or dropped anywhere on
 * the page, until `signal` is aborted, and says how many there are that cannot be uploaded. `folders` has those of
 * files that lie in one, as lists of names. Answers the fields for choosing `files` and a `tree`, which are clicked for
 * their dialogs, and not shown.
 */
export function takeUploads(add, signal) {
  const takeFiles = (files, { left = {}, folders = new Map() } = /** @type {any} */ ({})) => {
    const all = { ...left, many: (left.many ?? 0) + add(files, folders) };
    const limit = formatBytes(service.fileBytes);
    const part = ([why, n]) => t.left[why]({ n, count: formatNumber(n), limit });
    const parts = Object.entries(all).filter(([, n]) => n > 0).map(part);
    if (parts.length) notify(t.left_out({ parts: parts.join(", ") }), { stays: true });
  };
  const takeFolders = async (items) => {
    const owner = currentUser()?.id;
    const { files, ...found } = await filesIn(items);
    if (currentUser()?.id === owner) takeFiles(files, found);
  };
  takeDrops({ takeFiles, takeFolders }, signal);
  return { files: chooserOf(takeFiles), tree: chooserOf(takeFolders, { webkitdirectory: true }) };
}

/** A field that gives what is chosen with it to `take(files)`. */
function chooserOf(take, options) {
  const chooser = el("input", { type: "file", multiple: true, hidden: true, ...options });
  chooser.addEventListener("change", () => {
    take([...chooser.files]);
    chooser.value = "";
  });
  return chooser;
}

function takeDrops({ takeFiles, takeFolders }, signal) {
  const what = el("p", {}, t.drop);
  const veil = el("div", { class: "drop-veil", "aria-hidden": "true", hidden: true }, what);
  append(document.body, veil);
  signal.addEventListener("abort", () => veil.remove());
  addEventListener("paste", ({ clipboardData }) => {
    const files = [...clipboardData?.files ?? []];
    if (files.length && !isInField() && !document.querySelector("dialog[open]")) takeFiles(files.map(named));
  }, { signal });
  const listen = (type, listener) => addEventListener(type, (event) => {
    if (hasFiles(event) && !document.querySelector("dialog[open]")) listener(event);
  }, { signal });
  listen("dragover", (event) => {
    event.dataTransfer.dropEffect = "copy";
    veil.hidden = false;
  });
  // The pointer leaves the window, and not only one element for another, where it goes to no element.
  listen("dragleave", (event) => { veil.hidden = event.relatedTarget === null; });
  listen("drop", ({ dataTransfer }) => {
    veil.hidden = true;
    // Among the files a folder would be one that cannot be read.
    const entries = [...dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    if (entries.some(({ isDirectory }) => isDirectory)) takeFolders(entries);
    else takeFiles([...dataTransfer.files]);
  });
}

/** A pasted file. Browsers call every screenshot `image.png`, so it is called by the moment. */
function named(file) {
  if (file.name !== "image.png") return file;
  const time = localTime(new Date().toISOString()).replace("T", " ").replaceAll(":", ".");
  return new File([file], `${t.pasted({ time })}.png`, { type: file.type });
}

/**
 * Looks through files and folders, `File` or `FileSystemEntry`. Answers `{ files, folders, left }`: the files that can
 * be sent, the folders of those that lie in one, as lists of names, and how many things are left out for each reason.
 */
async function filesIn(items) {
  const left = { type: 0, large: 0, unreadable: 0, empty: 0, system: 0, many: 0 };
  const found = { files: [], folders: new Map(), left };
  for (const item of items) await look(item, found);
  return found;
}

async function look(item, found) {
  if (item.isDirectory) return open(item, found);
  const { files, folders, left } = found;
  if (SYSTEM_FILES.includes(item.name.toLowerCase())) {
    left.system += 1;
  } else if (files.length >= MAX_WAITING) {
    left.many += 1;
  } else {
    try {
      const file = item instanceof File ? item : await new Promise((...settle) => { item.file(...settle); });
      await readable(file);
      files.push(file);
      const path = item.webkitRelativePath || item.fullPath?.slice(1);
      const names = path?.split("/").slice(0, -1).map((name) => name.replace(UNUSUAL, "").trim()) ?? [];
      folders.set(file, names.filter(Boolean));
    } catch (error) {
      left[REASONS[error.status] ?? "unreadable"] += 1;
    }
  }
}

/** Looks through a folder, of which the browser tells some entries at a time. */
async function open(folder, found) {
  const reader = folder.createReader();
  const read = () => new Promise((...settle) => { reader.readEntries(...settle); });
  let count = 0;
  try {
    for (let entries; (entries = await read()).length; count += entries.length) {
      for (const entry of entries) await look(entry, found);
    }
    if (count === 0) found.left.empty += 1;
  } catch {
    found.left.unreadable += 1;
  }
}
