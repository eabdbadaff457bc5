// The marks of the types of files, which stand before names.

import { el, svg } from "./dom.js";
import { typeName } from "./texts/file-types.js";

const SHEET = "M5 2.5h6.5L15 6v11.5H5z M11.5 2.5V6H15";
const DRAWINGS = {
  archive: "M2.5 4h15v3.5h-15z M3.5 7.5v9h13v-9 M8 10.5h4",
  pdf: `${SHEET} M6.8 15v-4H8a1.2 1.2 0 0 1 0 2.4H6.8 M10.2 11v4q2 0 2-2t-2-2 M13.6 13v-2`,
  picture: "M2.5 4h15v12h-15z M2.5 13.5 7 9l3.5 3.5L13 10.5l4.5 3.5 M13.5 8a.7.7 0 1 0 0-1.4.7.7 0 0 0 0 1.4z",
  sheet: SHEET,
  text: `${SHEET} M7.5 9.5h5 M7.5 12h5 M7.5 14.5h3`,
};
const ARCHIVE = /^application\/(zip|gzip|vnd\.rar|x-(7z|rar|tar|bzip2).*)$/;

/** The mark of a file, with the name of its type for screen readers and the pointer. */
export function markOf({ content_type: type, filename }) {
  const name = typeName(type, filename);
  const kind = kindOf(type);
  const drawing = svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: DRAWINGS[kind] }));
  return el("span", { class: `mark is-${kind}`, role: "img", "aria-label": name, title: name }, drawing);
}

function kindOf(type) {
  if (type === "application/pdf") return "pdf";
  if (type.startsWith("image/")) return "picture";
  if (type.startsWith("text/") || type === "application/json") return "text";
  return ARCHIVE.test(type) ? "archive" : "sheet";
}
