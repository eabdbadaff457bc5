// What stands around each page: the skip link, the navigation, notices, and the place of the page itself.

import { currentUser, hasSession, isAdmin, service, signOut } from "./api.js";
import { button, errorParts, iconButton } from "./controls.js";
import { mayLeave } from "./dialogs.js";
import { el, focusOn, icon, nameText, replace } from "./dom.js";
import { texts } from "./texts.js";

/** Holds the brand and the heading of some pages already, which stay until a page is shown. */
const place = /** @type {any} */ (document.getElementById("page"));
const side = el("header", { class: "side" });
/** The sentences at the bottom of the page that screen readers announce: what was done, and what failed. */
const done = el("div", { role: "status" });
const failed = el("div", { role: "alert" });
const frame = el("div", { class: "frame" }, side, el("div", { class: "notices" }, done, failed), place);

/** Whose navigation is drawn, as JSON. */
let drawn = null;

/** The entries of the navigation, named as their addresses, texts and drawings are. */
const ENTRIES = ["files", ...(service.publicList ? ["public"] : []), "links", "account"];
const ADMIN_ENTRIES = ["users", "stats", "audit"];

/** Milliseconds for which a notice of success stays, and one with a button; pointing at it or focusing it keeps it. */
const STAY = 6000;
const STAY_WITH_ACTION = 20_000;

/** Whether what is dragged are files. */
export const hasFiles = (event) => Boolean(event.dataTransfer?.types.includes("Files"));

/** Where no page takes it, a dropped file is ignored. The browser would show it in place of the console. */
for (const type of ["dragover", "drop"]) {
  addEventListener(type, (/** @type {DragEvent} */ event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
}

/** Signs out. A listener of `signout` may prevent that, ask the person, and call the event's `detail` to go on. */
export async function leave() {
  if (!(await mayLeave())) return;
  if (dispatchEvent(new CustomEvent("signout", { cancelable: true, detail: endSession }))) await endSession();
}

async function endSession() {
  const identity = service.provider && (await import("./identity.js").catch(() => null));
  const wasOpened = identity?.isOpened();
  const isTold = await signOut();
  if (!isTold) notify(texts.main.signed_out_here);
  else if (wasOpened) {
    const action = identity.signOutButton();
    notify(identity.stillSignedIn, { action, stays: Boolean(action) });
  }
}

/** Puts the frame into the document. */
export function buildFrame() {
  const skip = el("a", { class: "skip", href: "#page" }, texts.frame.skip);
  skip.addEventListener("click", (event) => {
    event.preventDefault();
    (place.querySelector("h1") ?? place).focus();
  });
  document.body.replaceChildren(skip, frame);
  addEventListener("session", () => drawSide());
  side.addEventListener("click", (event) => event.target.closest("a") && showMenu(false));
  side.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !side.classList.contains("is-open")) return;
    showMenu(false);
    side.querySelector(".menu-button").focus();
  });
  document.body.classList.toggle("has-side", hasSession());
}

/** Draws the navigation anew where it would show something else than it does. */
function drawSide() {
  const user = currentUser();
  const { id, name, username, email, role } = user ?? {};
  const wanted = JSON.stringify([id, name, username, email, role]);
  document.body.classList.toggle("has-side", Boolean(user));
  if (drawn === wanted) return;
  drawn = wanted;
  replace(side);
  if (!user) return;
  const toggle = button(texts.frame.menu, { kind: "quiet menu-button", drawing: "menu", "aria-expanded": "false",
    "aria-controls": "menu" });
  toggle.addEventListener("click", () => showMenu(toggle.getAttribute("aria-expanded") !== "true"));
  const nav = el("nav", { "aria-label": texts.frame.navigation }, group(ENTRIES),
    isAdmin() && [el("p", { class: "side-title", id: "admin-title" }, texts.frame.administration),
      group(ADMIN_ENTRIES, "admin-title")]);
  const who = el("div", { class: "who" },
    el("p", {}, el("span", { class: "who-name" }, nameText(user.name || user.username)),
      el("span", { class: "who-mail" }, nameText(user.email))),
    button(texts.frame.sign_out, { kind: "quiet", drawing: "out", act: leave, busy: texts.frame.signing_out }));
  replace(side, el("div", { class: "side-head" }, brand(), toggle), el("div", { class: "menu", id: "menu" }, nav, who));
  markSection(side.dataset.section);
}

function group(entries, labelledBy) {
  const links = entries.map((name) => el("li", {}, el("a", { href: `/console/${name}`, "data-section": name },
    icon({ links: "link", public: "users" }[name] ?? name), texts.frame[name])));
  return el("ul", { class: "side-links", "aria-labelledby": labelledBy }, links);
}

function showMenu(isShown) {
  side.classList.toggle("is-open", isShown);
  side.querySelector(".menu-button")?.setAttribute("aria-expanded", String(isShown));
}

/** The name of the service with its mark. */
export const brand = () => el("a", { class: "brand", href: "/console" },
  el("span", { class: "brand-mark" }, icon("hanger")), texts.frame.service);

/** Marks the entry of the navigation that the page belongs to. */
function markSection(name) {
  side.dataset.section = name ?? "";
  for (const link of side.querySelectorAll("[data-section]")) {
    const isHere = link.pathname === location.pathname;
    if (link.dataset.section === name) link.setAttribute("aria-current", isHere ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
}

/**
 * Shows a page, names it in the title of the tab, and moves the focus to its heading unless `focus` is false. Then
 * there is an event `page`.
 */
export function showPage(element, /** @type {any} */ { section, isBare = false, focus = true }) {
  showMenu(false);
  markSection(section);
  document.body.classList.toggle("is-bare", isBare);
  replace(place, element);
  const heading = place.querySelector("h1");
  setTitle(heading?.textContent ?? "");
  const first = place.querySelector("[data-focus]");
  if (first) first.focus();
  else if (focus) (heading ?? place).focus({ preventScroll: true });
  dispatchEvent(new Event("page"));
}

/** Names the page in the title of the tab, as when the name of a file has been loaded. */
export function setTitle(text) {
  document.title = text ? `${text} · ${texts.frame.service}` : texts.frame.service;
}

/**
 * A page without the navigation. Answers `draw(title, ...content)`, which shows that below the name of the service and
 * answers the element. What is drawn while the page is shown is also named in the title of the tab, and gets the focus.
 */
export function barePage() {
  const element = el("div", { class: "narrow" });
  return (title, ...content) => {
    replace(element, brand(), el("h1", { tabindex: "-1" }, title), content);
    if (!element.isConnected) return element;
    setTitle(title);
    (element.querySelector("[data-focus]") ?? element.querySelector("h1")).focus();
    return element;
  };
}

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

/** A person who leaves a page has read its notices. Only those that can still undo something stay. */
addEventListener("departure", () => {
  for (const notice of [...done.children, ...failed.children]) if (!notice.querySelector("p .button")) takeAway(notice);
});

/** Takes a notice away. Where it has the focus, that goes to the heading of the page. */
export function takeAway(notice) {
  const hadFocus = notice.contains(document.activeElement);
  notice.remove();
  if (hadFocus) focusOn(null, { preventScroll: true });
}

function add(place, className, parts) {
  const notice = el("div", { class: className }, el("p", {}, parts),
    iconButton(texts.close, "close", { on: { click: () => takeAway(notice) } }));
  place.append(notice);
  return notice;
}
