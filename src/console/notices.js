// Notices: sentences at the top of the page that screen readers announce.

import { errorParts, iconButton } from "./controls.js";
import { append, el, focusOn } from "./dom.js";
import { texts } from "./texts.js";

/** Milliseconds for which a notice of success stays, and one with a button; pointing at it or focusing it keeps it. */
const STAY = 6000;
const STAY_WITH_ACTION = 20_000;
/** Milliseconds within which a notice belongs to the page that comes, as where what was made is shown there. */
const JUST_SAID = 2000;

const done = el("div", { role: "status" });
const failed = el("div", { role: "alert" });

/** The element that holds all notices. */
export const noticePlace = el("div", { class: "notices" }, done, failed);

/**
 * Says that something was done; of these sentences the last two stay. `action` may be a link or button beside it; one
 * that `stays` is there until it is closed. Answers the notice, for whoever takes it away sooner.
 */
export function notify(text, /** @type {any} */ { action, stays = false } = {}) {
  if (done.childElementCount > 1) takeAway(done.firstElementChild);
  const notice = add(done, "notice", [text, action && " ", action]);
  const remove = () => {
    if (notice.matches(":hover, :focus-within")) setTimeout(remove, STAY);
    else notice.remove();
  };
  if (!stays) setTimeout(remove, action ? STAY_WITH_ACTION : STAY);
  return notice;
}

/** Says that something failed that has no better place to say it. It stays until it is closed. */
export function notifyError(error) {
  if (error?.name === "AbortError") return;
  if (failed.firstElementChild) takeAway(failed.firstElementChild);
  add(failed, "notice is-error", errorParts(error));
}

/** Takes all notices away, as when another person signs in. */
export function clearNotices() {
  done.replaceChildren();
  failed.replaceChildren();
}

/** A page that is gone to shows no notices of the one before, but those that can still undo something. */
addEventListener("page", () => {
  for (const notice of [...done.children, ...failed.children]) {
    const isOld = performance.now() - Number(/** @type {any} */ (notice).dataset.at) > JUST_SAID;
    if (isOld && !notice.querySelector("p .button")) takeAway(notice);
  }
});

/** Takes a notice away. Where it has the focus, that goes to the heading of the page. */
export function takeAway(notice) {
  const hadFocus = notice.contains(document.activeElement);
  notice.remove();
  if (hadFocus) focusOn(null, { preventScroll: true });
}

function add(place, className, parts) {
  const close = iconButton(texts.close, "close");
  const notice = el("div", { class: className, data: { at: performance.now() } }, el("p", {}, parts), close);
  close.addEventListener("click", () => takeAway(notice));
  append(place, notice);
  return notice;
}
