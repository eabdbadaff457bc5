// Texts of files as they are shown. They become text nodes, so nothing in them can run.

import { el } from "./dom.js";
import { formatBytes } from "./format.js";
import { oneFile } from "./texts/one-file.js";

const t = oneFile.preview;
/** Bytes of a text that are shown. With more, browsers take seconds for one that is a single line. */
const BEGINNING = 1024 ** 2 / 16;
/** Characters that change the direction of the text around them. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/;

/** A remark beside or in place of a preview; nothing where there is no text for one. */
export const note = (text) => text && el("p", { class: "note" }, text);

/** The headers of a request for as much of a text as is shown. */
export const beginningOf = (size) => (size > BEGINNING ? { Range: `bytes=0-${BEGINNING - 1}` } : {});

/** A text below what its reader has to know about it. `bytes` are its beginning, or all of it. */
export function textOf({ filename: name, file_size: size }, bytes) {
  const isCut = bytes.byteLength < size;
  const text = new TextDecoder().decode(bytes, { stream: isCut });
  if (text.includes("\0")) return note(t.binary);
  return [
    note(isCut && t.beginning({ shown: formatBytes(bytes.byteLength), size: formatBytes(size) })),
    note(text.includes("\ufffd") && t.not_utf8),
    note(TURNING.test(text) && t.turning),
    el("pre", { class: "preview-text", dir: "auto", tabindex: "0", role: "region", "aria-label": name }, text),
  ];
}
