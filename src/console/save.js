// Saving what the API answers as a file.

import { UNANSWERED, download } from "./contents.js";
import { el } from "./dom.js";

/** Milliseconds after which the browser has surely begun to save, and the contents may go. */
const BEGUN = 60_000;

/**
 * Asks for a CSV file, with the byte order mark by which Excel sees that it is UTF-8, and lets the browser save it
 * under the name that the API gives it. Answers `{ name, size }`. The contents are saved only when they are whole: a
 * broken transfer throws, and leaves no file that looks complete. It is given up where the person signs out.
 */
export async function saveAttachment(path, query) {
  const stop = new AbortController();
  const { signal } = stop;
  addEventListener("person", () => stop.abort(), { signal });
  try {
    const asked = { ...query, bom: true };
    const { contents, disposition } = await download(path, { query: asked, signal, patience: UNANSWERED });
    const name = /filename=([\w.-]+)/.exec(disposition)?.[1] ?? "export.csv";
    save(contents, name);
    return { name, size: contents.size };
  } finally {
    stop.abort(); // takes the listener away
  }
}

/**
 * Lets the browser save a `Blob` under a name. The address of the contents is of this origin, so they get a type that
 * no browser shows: a file may be a page with scripts.
 */
export function save(contents, name) {
  const address = URL.createObjectURL(new Blob([contents], { type: "application/octet-stream" }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), BEGUN);
}
