// The marks of the types of files: a drawing or a few letters on a ground of the same colour.

import { el, svg } from "./dom.js";
import { typeName } from "./texts/file-types.js";

const SHEET = "M5 2.5h6.5L15 6v11.5H5z M11.5 2.5V6H15";
const DRAWINGS = {
  archive: "M2.5 4h15v3.5h-15z M3.5 7.5v9h13v-9 M8 10.5h4",
  audio: "M7.5 15V4.5l8-1.5v10.5 M7.5 15a2 2 0 1 1-4 0 2 2 0 0 1 4 0z M15.5 13.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  picture: "M2.5 4h15v12h-15z M2.5 13.5 7 9l3.5 3.5L13 10.5l4.5 3.5 M13.5 8a.7.7 0 1 0 0-1.4.7.7 0 0 0 0 1.4z",
  sheet: SHEET,
  table: "M3 4h14v12H3z M3 8h14 M3 12h14 M8 4v12",
  text: `${SHEET} M7.5 9.5h5 M7.5 12h5 M7.5 14.5h3`,
  video: "M2.5 5h10v10h-10z M12.5 9l5-3v8l-5-3",
};
const LETTERS = { excel: "X", pdf: "PDF", slides: "P", word: "W" };
/** The kinds by what their types have in common; the first that fits is it. */
const KINDS = Object.entries({
  pdf: /^application\/pdf$/, picture: /^image\//, audio: /^audio\//, video: /^video\//,
  word: /msword|wordprocessingml/, excel: /ms-excel|spreadsheetml/, slides: /powerpoint|presentation/,
  table: /csv$|spreadsheet/, archive: /^application\/(zip|gzip|vnd\.rar|x-(7z|rar|tar|bzip2).*)$/,
  text: /^text\/|json$|rtf$|opendocument\.text$/,
});

/** The mark of the type of a file, with its name for screen readers and the pointer. */
export function markOf({ content_type: type, filename }) {
  const name = typeName(type, filename);
  const [kind] = KINDS.find(([, pattern]) => pattern.test(type)) ?? ["sheet"];
  const drawing = LETTERS[kind] ?? svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: DRAWINGS[kind] }));
  return el("span", { class: `mark is-${kind}`, role: "img", "aria-label": name, title: name }, drawing);
}
