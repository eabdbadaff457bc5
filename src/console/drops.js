// Files and folders that are dropped on a page, or chosen. The service has no folders, so each file comes by its plain
// name.

import { append, el } from "./dom.js";
import { hasFiles } from "./frame.js";
import { texts } from "./texts.js";
import { MAX_WAITING, readable } from "./uploads.js";

/** What operating systems keep in folders for themselves, in lower case. */
const SYSTEM_FILES = [".ds_store", "desktop.ini", "thumbs.db"];
/** Why a file is left out, by the status with which it would be refused. */
const REASONS = { 413: "large", 415: "type", 422: "unreadable" };

/**
 * Gives `takeFiles(files)` what is dropped anywhere on the page, or `takeFolders(entries)` where there is a folder in
 * it, until `signal` is aborted.
 */
export function takeDrops({ takeFiles, takeFolders }, signal) {
  const what = el("p", {}, texts.files.list.drop);
  const veil = el("div", { class: "drop-veil", "aria-hidden": "true", hidden: true }, what);
  append(document.body, veil);
  signal.addEventListener("abort", () => veil.remove());
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

/**
 * Looks through files and folders, `File` or `FileSystemEntry`. Answers `{ files, left }`: the files that can be sent,
 * and how many things are left out for each reason.
 */
export async function filesIn(items) {
  const found = { files: [], left: { type: 0, large: 0, unreadable: 0, empty: 0, system: 0, many: 0 } };
  for (const item of items) await look(item, found);
  return found;
}

async function look(item, found) {
  if (item.isDirectory) return open(item, found);
  const { files, left } = found;
  if (SYSTEM_FILES.includes(item.name.toLowerCase())) {
    left.system += 1;
  } else if (files.length >= MAX_WAITING) {
    left.many += 1;
  } else {
    try {
      const file = item instanceof File ? item : await new Promise((...settle) => { item.file(...settle); });
      await readable(file);
      files.push(file);
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
