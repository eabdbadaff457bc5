// Files that are dropped on a page.

import { append, el } from "./dom.js";
import { hasFiles } from "./frame.js";
import { texts } from "./texts.js";

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
