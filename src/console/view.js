// Addresses of files for pictures, videos and sounds. Their elements send no header, so a token that the service gives
// for some minutes stands in the address in place of it. The browser then loads only what it shows.

import { addressOf, post, shared } from "./api.js";
import { append, el } from "./dom.js";
import { isPicture } from "./file-type.js";
import { markOf } from "./marks.js";

/** Bytes of the largest picture that is its own mark. */
const THUMBNAIL = 1024 ** 2;
/** A token is not used any more in the last milliseconds before its end. */
const MARGIN = 30_000;

/** `{ token, until }` of the signed-in person, or `null`. */
let current = null;
addEventListener("person", () => { current = null; });

const renew = shared(async () => {
  const { token, expires_in: seconds } = await post("/auth/view-token");
  current = { token, until: Date.now() + seconds * 1000 - MARGIN };
});

/** The address of what a file holds. It is good for some minutes, and for a part that is asked for later as well. */
export const viewAddress = ({ id }) => viewOf(`/uploads/${id}/download`);

/** The address of contents at a path of the API, which is good for as long. */
export async function viewOf(path, query = {}) {
  if (!current || Date.now() > current.until) await renew();
  return addressOf(path, { ...query, view: current.token });
}

/**
 * The mark of a file, over which a small picture is shown as soon as it is seen, unless the network is slow. It is
 * loaded from the address that `addressFor(file)` promises.
 */
export function thumbnailOf(file, addressFor = viewAddress) {
  const mark = markOf(file);
  const { saveData, effectiveType } = /** @type {any} */ (navigator).connection ?? {};
  const isWanted = isPicture(file) && file.file_size < THUMBNAIL && !saveData && !/2g|3g/.test(effectiveType);
  if (!isWanted) return mark;
  addressFor(file).then((src) => append(mark, el("img", { src, alt: "", loading: "lazy", on: {
    error: ({ target }) => target.remove() } })), () => {}); // without a token the mark stays as it is
  return mark;
}

/**
 * A `video` or an `audio` element for a file. Where its address ends while it is played, it goes on at the same place
 * with another one; `failed()` is called where it can play nothing.
 */
export async function playerOf(kind, file, { signal, failed }) {
  const player = el(kind, { class: "preview-media", controls: true, preload: "metadata", "aria-label": file.filename,
    src: await viewAddress(file) });
  let failedAt = -1;
  player.addEventListener("error", async () => {
    const { currentTime: at, paused: isPaused } = player;
    if (signal.aborted) return;
    if (at === failedAt) return failed();
    failedAt = at;
    player.src = await viewAddress(file);
    player.currentTime = at;
    if (!isPaused) await player.play();
  });
  signal.addEventListener("abort", () => player.removeAttribute("src"));
  return player;
}
