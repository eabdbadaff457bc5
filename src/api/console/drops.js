// Files that are dropped on a page.

import { append, el } from "./dom.js";
import { hasFiles } from "./frame.js";
import { texts } from "./texts.js";
import { addRefused } from "./uploads.js";

const t = texts.files;

/** Gives `take(files)` what is dropped anywhere on the page, until `signal` is aborted. Folders are refused by name. */
export function takeDrops(take, signal) {
  const veil = el("div", { class: "drop-veil", "aria-hidden": "true", hidden: true }, el("p", {}, t.list.drop));
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
  listen("drop", (event) => {
    veil.hidden = true;
    take(filesOf(event.dataTransfer));
  });
}

/** The dropped files without the folders, which look like files that cannot be read. */
function filesOf(transfer) {
  const files = [];
  for (const item of transfer.items) {
    const file = item.kind === "file" && item.getAsFile();
    if (!file) continue;
    if (item.webkitGetAsEntry?.()?.isDirectory) addRefused(file.name, t.transfers.folder);
    else files.push(file);
  }
  return files;
}
