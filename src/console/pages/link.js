// The page of a link to a file, or to several.

import { loaded } from "../api.js";
import { button, buttonLink, load } from "../controls.js";
import { el, replace } from "../dom.js";
import { formatBytes, timeText } from "../format.js";
import { aboutOf, linkPage } from "../link-page.js";
import { markOf } from "../marks.js";
import { typeName } from "../texts/file-types.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.link;
/** Bytes of the largest picture that is loaded before anybody asks for it. */
const UNASKED = 2 * 1024 ** 2;

export const show = (context) => linkPage(context, t, shownOf);

async function shownOf(about, link) {
  if (!about.files) return shownFile(about, link);
  const { sharedFiles } = await loaded(import("../shared-files.js"));
  return sharedFiles(about, link);
}

/** What there is to know about the file, its buttons, and what is in it. The link may end before they are pressed. */
function shownFile(file, link) {
  const { address, ask, refresh } = link;
  const { filename, sender, content_type: type, file_size: size, expires_at: until, inline } = file;
  const hasPicture = inline && size > 0 && type.startsWith("image/");
  const save = async () => {
    if (await aboutOf(address, ask)) el("a", { href: address, download: "" }).click();
    else refresh();
  };
  const content = [
    el("p", { class: "lead" }, `${typeName(type, filename)} · ${formatBytes(size)}`),
    hasPicture && picture(file, address),
    el("div", { class: "form-actions" },
      button(t.download({ size: formatBytes(size) }), { kind: "primary", drawing: "download", act: save,
        failed: refresh }),
      inline && buttonLink(t.open, address, { target: "_blank", rel: "noopener" })),
    el("p", { class: "aside" }, t.until, " ", timeText(until)),
    inline && size > 0 && !hasPicture && text(file, link),
  ];
  return { title: filename, mark: markOf(file), sender, sent: t.sent, content };
}

/** The picture, or where it is large a button that shows it. */
function picture({ filename: alt, file_size: size }, address) {
  const place = el("div", { class: "link-preview" });
  const draw = () => {
    const image = el("img", { class: "preview-picture", src: address, alt });
    image.addEventListener("error", () => replace(place, el("p", { class: "note" }, oneFile.preview.broken)));
    replace(place, image);
  };
  if (size <= UNASKED) draw();
  else replace(place, button(oneFile.preview.show({ size: formatBytes(size) }), { act: draw }));
  return place;
}

function text(file, { address, ask, signal }) {
  const place = el("div", { class: "link-preview" });
  const work = async () => {
    const { beginningOf, textOf } = await loaded(import("../text-preview.js"));
    const response = await ask(address, { headers: beginningOf(file.file_size) });
    return response && textOf(file, await response.arrayBuffer());
  };
  load(place, { signal, work, show: (nodes) => nodes });
  return place;
}
