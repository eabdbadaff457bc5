// The start of the console: its pages and their addresses, who may see them, and signing in again.

import { ApiError, currentUser, hasSession, isAdmin, loaded, resumeSession, service, setApiKey, shared,
  whenNeeded } from "./api.js";
import { button, buttonLink, countdown, emptyState, errorBox, pageHead, skeleton } from "./controls.js";
import { closeDialogs, formDialog, mayLeave } from "./dialogs.js";
import { el } from "./dom.js";
import { barePage, buildFrame, clearNotices, notifyError, showPage } from "./frame.js";
import { go, hideRest, keepQuery, match, query, restoreQuery, startRouter } from "./router.js";
import { texts } from "./texts.js";

/**
 * The pages. `page` is the module in `pages/`; `section` the entry of the navigation that is marked; `for`: `anyone`,
 * `guests` (people who are not signed in), `admins`, or else everybody who is signed in. A page that `stays` is not
 * shown anew when the viewer changes, because what it was shown with is used up. One that `isApart` needs no session:
 * it leaves that of those who have one as it is, so another page begins with a new document. To one that `hasToken`
 * links in mails lead.
 */
const ROUTES = [
  { path: "/console", for: "guests", page: "sign-in" },
  { path: "/console/register", page: "register", for: "guests" },
  { path: "/console/forgotten", page: "forgotten", for: "guests" },
  { path: "/console/reset", page: "reset", for: "anyone", stays: true, hasToken: true },
  { path: "/console/confirm", page: "confirm", for: "anyone", stays: true, isApart: true, hasToken: true },
  { path: "/console/link", page: "link", for: "anyone", stays: true, isApart: true },
  { path: "/console/send", page: "send", for: "anyone", stays: true, isApart: true },
  ...(service.provider ? [
    { path: "/console/oidc", page: "oidc", for: "anyone", stays: true, hasToken: true },
    { path: "/console/account/identity", page: "account-identity", section: "account" },
  ] : []),
  { path: "/console/files", page: "files", section: "files" },
  { path: "/console/files/deleted", page: "deleted-files", section: "files" },
  { path: "/console/files/:id", page: "file", section: "files" },
  ...(service.publicList ? [{ path: "/console/public", page: "public", section: "public" }] : []),
  { path: "/console/links", page: "links", section: "links" },
  { path: "/console/account", page: "account-profile", section: "account" },
  { path: "/console/account/password", page: "account-password", section: "account" },
  { path: "/console/account/second-factor", page: "account-second-factor", section: "account" },
  { path: "/console/account/sessions", page: "account-sessions", section: "account" },
  { path: "/console/account/tokens", page: "account-tokens", section: "account" },
  { path: "/console/account/leave", page: "account-leave", section: "account" },
  { path: "/console/users", page: "users", section: "users", for: "admins" },
  { path: "/console/users/new", page: "user-new", section: "users", for: "admins" },
  { path: "/console/users/:id", page: "user", section: "users", for: "admins" },
  { path: "/console/stats", page: "stats", section: "stats", for: "admins" },
  { path: "/console/audit", page: "audit", section: "audit", for: "admins" },
];

/** The page that is shown: `{ route, params, update, leave, change, viewer }`; `leave` and `change` abort its work. */
let shown = null;
/** How often an address was gone to, so that a page that came too late is not shown. */
let visits = 0;

const NOT_FOUND = { route: { page: "not-found", for: "anyone" }, params: {} };
const find = () => match(ROUTES, location.pathname) ?? NOT_FOUND;
const load = (page) => PLAIN[page] ?? import(`./pages/${page}.js`);

/** Pages that only say something. */
const PLAIN = {
  "not-found": { show: () => plainPage(texts.main.not_found_title,
    currentUser() ? texts.main.not_found : texts.main.not_found_outside) },
  "not-allowed": { show: () => plainPage(texts.main.not_allowed_title, texts.main.not_allowed) },
};

function plainPage(title, text, action = buttonLink(texts.main.to_start, "/console")) {
  if (!currentUser()) return barePage()(title, el("p", {}, text), el("p", { class: "form-actions" }, action));
  return el("div", {}, pageHead(title), emptyState("", text, action));
}

async function showAddress({ isReload = false, isStart = false, scroll = 0 } = {}) {
  const visit = (visits += 1);
  const user = currentUser();
  const { owner } = history.state ?? {};
  if (owner && user && owner !== user.id) return leaveAddress(); // another person has been here, such as at a search
  const { route, params } = find();
  if (shown?.route.isApart && route !== shown.route) return location.reload();
  if (user) history.replaceState({ ...history.state, owner: user.id }, "");
  const isSame = shown && !isReload && shown.route === route && JSON.stringify(shown.params) === JSON.stringify(params);
  if (isSame && shown.update && shown.viewer === viewer()) return update(shown);
  // Going back to where the token of a mail was taken out of the address: the page has it.
  if (isSame && route.stays && !location.hash) return;
  restoreQuery();
  if (user && route.for === "guests") return go("/console/files", { replace: true });
  const page = pageFor(route);
  let module;
  document.body.classList.add("is-going");
  try {
    module = await load(page);
  } catch (error) {
    if (visit !== visits) return;
    // The service is away, or has been replaced by another version.
    console.warn(error);
    replaceShown({}, {});
    const again = button(texts.main.load_again, { kind: "primary", act: () => location.reload() });
    const element = plainPage(texts.main.unloadable_title, texts.main.unloadable, again);
    return showPage(element, { section: route.section });
  } finally {
    if (visit === visits) document.body.classList.remove("is-going");
  }
  if (visit !== visits) return;
  if (pageFor(route) !== page) return showAddress({ isReload, isStart, scroll }); // the role was taken meanwhile
  replaceShown(route, params);
  const made = module.show(context(shown));
  const { element, update: next } = made instanceof Node ? { element: made } : made;
  shown.update = next;
  showPage(element, { section: route.section, isBare: !currentUser() || Boolean(route.stays), focus: !isStart });
  if (!isReload) scrollWhenLoaded(scroll, shown.leave.signal);
}

/** Ends what the page does that was shown so far. One that could not be loaded has an empty `route`. */
function replaceShown(route, params) {
  shown?.leave.abort();
  shown?.change.abort();
  closeDialogs({ all: Boolean(shown) && shown.viewer !== viewer() });
  shown = { route, params, leave: new AbortController(), change: new AbortController(), viewer: viewer() };
}

/** Scrolls to where the page was, once it is high enough again, unless it is left or the person does something. */
function scrollWhenLoaded(target, signal) {
  const end = performance.now() + 2000;
  let isLeft = false;
  for (const type of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    addEventListener(type, () => { isLeft = true; }, { once: true, passive: true, signal });
  }
  const step = () => {
    if (isLeft || signal.aborted) return;
    scrollTo(0, target);
    if (Math.abs(scrollY - target) > 1 && performance.now() < end) requestAnimationFrame(step);
  };
  step();
}

/** Who looks at a page: another account, or the same one in another role, sees the page anew. */
const viewer = () => currentUser() && `${currentUser().role} ${currentUser().id}`;

function update(page) {
  keepQuery();
  page.change.abort();
  page.change = new AbortController();
  page.update(context(page));
}

/**
 * What `show` of a page is given: `params` of its path; `query`, a `URLSearchParams`; `signal`, aborted when the
 * address changes; and `leaving`, aborted when the page is left. `show` answers an element, or
 * `{ element, update(context) }`: then `update` is called in place of `show` while only the query changes, and the page
 * keeps what it has.
 */
function context({ params, leave, change }) {
  return { params, query: query(), signal: change.signal, leaving: leave.signal };
}

/** The module that answers an address: what needs a session or a role is replaced where there is none. */
function pageFor(route) {
  if (route.for === "anyone" || route.for === "guests") return route.page;
  if (!currentUser()) return "sign-in";
  return route.for === "admins" && !isAdmin() ? "not-allowed" : route.page;
}

function askApiKey(error) {
  return formDialog(texts.main.api_key, {
    text: error.reason === "INVALID_API_KEY" ? texts.main.api_key_wrong : texts.main.api_key_text,
    fields: [{ name: "key", label: texts.main.api_key, type: "password", required: true, autocomplete: "off" }],
    label: texts.main.api_key_use,
    submit: ({ key }) => {
      // With any other character no request could be sent at all (RFC 9110, 5.5).
      const isPossible = /^[\x20-\x7e]+$/.test(key.trim());
      if (!isPossible) throw new ApiError({ status: 422, fields: { key: texts.main.api_key_invalid } });
      setApiKey(key.trim());
      return true;
    },
  });
}

/** Goes on with the tab's session; while the service is away or says to wait, that is shown, and tried again. */
const start = shared(async () => {
  // The page of the address comes while the session is being renewed.
  if (hasSession()) Promise.resolve(load(find().route.page)).catch(() => {});
  try {
    const { isApart, stays } = find().route;
    // A page whose address holds all that it needs is for whom it was sent to, whoever is signed in in other tabs.
    if (!isApart) await resumeSession({ isAlone: stays });
  } catch (error) {
    const box = error.status === 429
      ? el("p", { class: "lead", role: "alert" }, texts.main.limited, " ", countdown(error.retryAt, start), ".")
      : errorBox(error, { again: start });
    return showPage(el("div", { class: "narrow" }, pageHead(texts.main.starting), box), { isBare: true });
  }
  startRouter(showAddress, mayLeave);
  addEventListener("session", sessionChanged);
  return showAddress({ isStart: true });
});

/** Another account, or none: nothing of the former one stays, its address neither. Another role: the page anew. */
function sessionChanged() {
  if (!shown || shown.viewer === viewer()) return;
  clearNotices();
  closeDialogs({ all: true });
  if (shown.route.stays) return;
  if (shown.viewer && !currentUser()) leaveAddress();
  else showAddress({ isReload: true });
}

/**
 * Goes to the start, and forgets what the history keeps with the present address. Where that leads straight to the
 * provider, who has just signed out here is not signed in there and then.
 */
function leaveAddress() {
  history.replaceState({ entry: history.state?.entry }, "", service.provider?.leads ? "/console?password" : "/console");
  return showAddress({ isReload: true });
}

addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  notifyError(event.reason);
});
// A page that the browser has kept in memory could be one of somebody who has signed out since.
addEventListener("pageshow", (event) => event.persisted && location.reload());
// Some programs encode the `#` or `?` of a link, which makes it a part of the path.
const path = location.pathname.replace(/%(25)*(23|3f)/i, "#");
if (path !== location.pathname) history.replaceState(history.state, "", path + location.search + location.hash);
if (find().route.hasToken) hideRest();
// Otherwise `browser.js` has said that this browser cannot show the pages.
if (document.getElementById("unable").hidden) {
  buildFrame();
  const isBare = !hasSession() || Boolean(find().route.stays);
  document.body.classList.toggle("is-bare", isBare);
  if (!isBare) showPage(skeleton(4), { focus: false });
  whenNeeded({ signIn: async () => (await loaded(import("./pages/sign-in.js"))).signInDialog(), apiKey: askApiKey });
  start();
}
