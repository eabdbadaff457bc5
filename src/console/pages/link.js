// The page of a link to a file, or to several, for people without an account. The secret of the link is the fragment of
// the address, which browsers send to nobody. The page needs no session and no API key, and leaves both as they are.

import { errorOf, loaded, offlineError } from "../api.js";
import { button, buttonLink, load, skeleton } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { formatBytes, timeText } from "../format.js";
import { brand, setTitle } from "../frame.js";
import { markOf } from "../marks.js";
import { typeName } from "../texts/file-types.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.link;
/** Milliseconds after which a request is given up. */
const TIMEOUT = 60_000;
/** Bytes of the largest picture that is loaded before anybody asks for it. */
const UNASKED = 2 * 1024 ** 2;

export function show({ leaving: signal }) {
  const heading = el("h1", { tabindex: "-1" }, t.title);
  const lead = el("div", { class: "link-lead" });
  const place = el("div", {});
  const refresh = () => {
    const token = location.hash.slice(1);
    const address = `/api/v1/links/${encodeURIComponent(token)}`;
    return load(place, {
      signal,
      waiting: skeleton(3),
      work: async () => {
        const file = token && await find(address, signal);
        if (!file?.files) return file;
        const { sharedFiles } = await loaded(import("../shared-files.js"));
        return sharedFiles(file, { address, refresh,
          ask: (path, options = {}) => ask(path, { ...options, signal }) });
      },
      show: (found) => {
        const { filename, sender, mark = found && markOf(found), sent = t.sent, content } = found || {};
        replace(heading, found ? nameText(filename) : t.ended_title);
        setTitle(heading.textContent);
        replace(lead, found && [mark, sender && el("p", { class: "soft" }, nameText(sender), sent)]);
        if (!found) return el("p", {}, t.ended);
        return content ?? shownFile(found, { address, signal, refresh });
      },
    });
  };
  refresh();
  return { element: el("div", { class: "narrow" }, brand(), lead, heading, place), update: refresh };
}

/** What there is to know about the file, its buttons, and what is in it. The link may end before they are pressed. */
function shownFile(file, { address, signal, refresh }) {
  const { content_type: type, file_size: size, expires_at: until, inline } = file;
  const hasPicture = inline && size > 0 && type.startsWith("image/");
  const save = async () => {
    if (await find(address, signal)) el("a", { href: address, download: "" }).click();
    else refresh();
  };
  return [
    el("p", { class: "lead" }, `${typeName(type, file.filename)} · ${formatBytes(size)}`),
    hasPicture && picture(file, address),
    el("div", { class: "form-actions" },
      button(t.download({ size: formatBytes(size) }), { kind: "primary", drawing: "download", act: save,
        failed: refresh }),
      inline && buttonLink(t.open, address, { target: "_blank", rel: "noopener" })),
    el("p", { class: "aside" }, t.until, " ", timeText(until)),
    inline && size > 0 && !hasPicture && text(file, address, signal),
  ];
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

function text(file, address, signal) {
  const place = el("div", { class: "link-preview" });
  const work = async () => {
    const { beginningOf, textOf } = await loaded(import("../text-preview.js"));
    const response = await ask(address, { headers: beginningOf(file.file_size), signal });
    return response && textOf(file, await response.arrayBuffer());
  };
  load(place, { signal, work, show: (nodes) => nodes });
  return place;
}

/** What the service tells about the file or files of a link; `null` where the link has ended. */
async function find(address, signal) {
  const response = await ask(`${address}?about=true`, { signal });
  return response && response.json();
}

/** What `browser.js` has asked already, once. */
function asked(address) {
  const page = /** @type {any} */ (window);
  const { answer } = page.asked?.address === address ? page.asked : {};
  delete page.asked;
  return answer;
}

/** The service's answer, or `null` where the link has ended. */
async function ask(address, { signal, ...options }) {
  let response;
  try {
    const either = AbortSignal.any([AbortSignal.timeout(TIMEOUT), signal]);
    response = await (asked(address)
      ?? fetch(address, { ...options, cache: "no-store", credentials: "omit", signal: either }));
  } catch (error) {
    signal.throwIfAborted();
    throw offlineError(error);
  }
  if (response.status === 404) return null;
  if (!response.ok) throw errorOf(response.status, (name) => response.headers.get(name), await response.text());
  return response;
}
