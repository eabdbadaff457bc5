// Previews: what a file holds, seen without saving it. A picture is an `<img>` of one of a few types, a video or a
// sound is played, a text becomes a text node, so nothing in a file can run. Whatever else it is can be downloaded.

import { download } from "./contents.js";
import { button, iconButton, load, skeleton } from "./controls.js";
import { dialog } from "./dialogs.js";
import { append, el, nameText, replace } from "./dom.js";
import { act } from "./file-actions.js";
import { hasPreview, isPicture, isText, playerFor } from "./file-type.js";
import { formatBytes, formatNumber } from "./format.js";
import { beginningOf, note, textOf } from "./text-preview.js";
import { typeName } from "./texts/file-types.js";
import { oneFile } from "./texts/one-file.js";
import { playerOf, viewAddress } from "./view.js";

const t = oneFile.preview;
const MIB = 1024 ** 2;
/** Bytes of the largest picture that is shown, and of the largest that is loaded before anybody asks for it. */
const LARGEST = 20 * MIB;
const UNASKED = 2 * MIB;
/** The most pixels of a picture: browsers need four bytes of memory for each to draw it. */
const MOST_PIXELS = 64_000_000;

/** The part of a file's page with its preview; `false` where there is none. */
export function previewSection(file, signal) {
  const place = el("div", {});
  const size = file.file_size;
  const begin = () => preview(place, file, signal, show);
  const show = isPicture(file) && size > UNASKED && size <= LARGEST
    && button(t.show({ size: formatBytes(size) }), { act: begin });
  if (show) replace(place, show);
  else begin();
  return hasPreview(file) && el("section", { class: "section file-preview", "aria-label": t.title }, place);
}

/** Shows the preview of one of some files in a dialog, from which the files beside it can be reached. */
export async function previewDialog(files, index) {
  const file = files[index];
  const place = el("div", {});
  const stop = new AbortController();
  const goTo = (by) => files[index + by] && box.close(index + by);
  const step = (by, label, drawing) => iconButton(label, drawing, { disabled: !files[index + by],
    on: { click: () => goTo(by) } });
  const box = dialog(nameText(file.filename), [
    el("p", { class: "soft" }, typeName(file.content_type, file.filename), " · ", formatBytes(file.file_size)), place,
    el("div", { class: "dialog-actions" }, step(-1, t.previous, "left"), step(1, t.next, "right"),
      button(oneFile.page.download, { drawing: "download", act: () => act("download", [file]), "data-goes-on": true })),
  ], { wide: true });
  box.element.addEventListener("keydown", ({ key, altKey, ctrlKey, metaKey, shiftKey, repeat }) => {
    // A key that is held down would begin a download for each file that it passes.
    if (!altKey && !ctrlKey && !metaKey && !shiftKey && !repeat) goTo({ ArrowLeft: -1, ArrowRight: 1 }[key]);
  });
  preview(place, file, stop.signal);
  const next = await box.result;
  stop.abort();
  if (next !== undefined) previewDialog(files, next);
}

function preview(place, file, signal, waiting) {
  load(place, { signal, waiting: waiting || skeleton(4), work: () => contentOf(file, signal), show: (nodes) => nodes });
}

async function contentOf(file, signal) {
  const { file_size: size } = file;
  if (!hasPreview(file)) return note(t.none);
  if (size === 0) return note(t.empty);
  if (isPicture(file) && size > LARGEST) return note(t.too_large({ size: formatBytes(size) }));
  if (isPicture(file)) return pictureOf(file, signal);
  const kind = playerFor(file);
  if (kind) {
    const place = el("div", {});
    const failed = () => replace(place, note(t.unplayable));
    return append(place, await playerOf(kind, file, { signal, failed }));
  }
  const { contents } = await download(`/uploads/${file.id}/download`, { headers: beginningOf(size), signal });
  return textOf(file, await contents.arrayBuffer());
}

/** A picture, whose size is known before it is drawn. */
async function pictureOf(file, signal) {
  const picture = el("img", { class: "preview-picture", src: await viewAddress(file), alt: file.filename });
  signal.addEventListener("abort", () => picture.removeAttribute("src")); // which ends the loading
  const { type } = await new Promise((resolve) => { picture.onload = picture.onerror = resolve; });
  if (type === "error") return note(t.broken);
  const { naturalWidth: width, naturalHeight: height } = picture;
  if (width * height <= MOST_PIXELS) return picture;
  return note(t.too_large({ size: t.pixels({ width: formatNumber(width), height: formatNumber(height) }) }));
}
