// Addresses of files for pictures, videos and sounds. Their elements send no header, so a token that the service gives
// for some minutes stands in the address in place of it. The browser then loads only what it shows.

import { addressOf, post, shared } from "./api.js";
import { el } from "./dom.js";

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
export async function viewAddress({ id }) {
  if (!current || Date.now() > current.until) await renew();
  return addressOf(`/uploads/${id}/download`, { view: current.token });
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
