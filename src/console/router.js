// Addresses: which page belongs to which path, and going from one to another without loading the document again.

import { currentUser } from "./api.js";

let show = (_position) => {};
/** Whether the page may be left, which may be a promise. */
let mayLeave = () => true;
/** The number of the present entry of the history; an entry of before this script was loaded may have none. */
let entry = history.state?.entry ?? 0;
let isAsking = false;
/** What the names begin with under which queries are kept, each with the id of a person and a path. */
const KEPT = "cloakroom.query.";
/** What stood behind the path of the address, see `hideRest`. */
let hidden = "";
const keptName = () => KEPT + currentUser()?.id + location.pathname;

/**
 * Listens to the browser; `handler` is called whenever the address has changed, with `{ scroll }`, the pixels to which
 * the page was scrolled when it was left, where the person goes back or forward. Before a person leaves the page,
 * `question()` is asked whether they may.
 */
export function startRouter(handler, question) {
  show = handler;
  mayLeave = question;
  history.scrollRestoration = "manual";
  history.replaceState({ ...history.state, entry }, "");
  addEventListener("popstate", travel);
  document.addEventListener("click", follow);
}

/** Shows the entry to which the person has gone back or forward, or returns from it: the browser is there already. */
async function travel({ state }) {
  if (isAsking || state?.entry === entry) return;
  // Where the fragment is changed in the address bar, the browser makes an entry of its own.
  if (!state) history.replaceState({ entry: entry + 1 }, "");
  isAsking = true;
  const isFree = await mayLeave();
  isAsking = false;
  const steps = (history.state?.entry ?? entry) - entry;
  // Where the person has gone back and forward again while they were asked, they are where they were.
  if (!isFree) return steps ? history.go(-steps) : undefined;
  entry += steps;
  dispatchEvent(new Event("departure"));
  return show({ scroll: history.state?.scroll ?? 0 });
}

/**
 * Follows links to pages of the console inside the document, unless the person wants another tab. Where they lead to
 * another page, there is an event `departure`, as where the person goes back or forward.
 */
async function follow(event) {
  const link = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  const isConsole = url.pathname === "/console" || url.pathname.startsWith("/console/");
  if (url.origin !== location.origin || !isConsole || (url.hash && url.pathname === location.pathname)) return;
  event.preventDefault();
  if (!(await mayLeave())) return;
  if (url.pathname !== location.pathname) dispatchEvent(new Event("departure"));
  go(url.pathname + url.search + url.hash);
}

/** Takes what stands behind the path, which may hold the token of a mail, out of the address and the history. */
export function hideRest() {
  hidden = location.hash + location.search;
  history.replaceState(history.state, "", location.pathname);
}

/** What stands behind the path, or did until it was hidden, once. */
export function takeRest() {
  if (location.hash || location.search) hideRest();
  const rest = hidden;
  hidden = "";
  return rest;
}

/** Goes to an address of the console. `replace` leaves the present one out of the history. */
export function go(address, { replace = false } = {}) {
  const from = location.pathname + location.search;
  history.replaceState({ ...history.state, scroll: scrollY }, "");
  if (replace || address === from) history.replaceState({ from: history.state.from, entry }, "", address);
  else history.pushState({ from, entry: (entry += 1) }, "", address);
  if (!replace) scrollTo(0, 0);
  show();
}

/** The address that led to the present one where it is `path` with a query, or else `path`. */
export function wayBack(path) {
  const from = history.state?.from ?? "";
  return from.startsWith(`${path}?`) ? from : path;
}

/** Remembers for the person what the address says of a list, such as its order, but neither the page nor the folder. */
export function keepQuery() {
  if (!currentUser()) return;
  const kept = withQuery({ page: null, before: null, folder: null });
  localStorage.setItem(keptName(), kept.slice(location.pathname.length));
}

/** Gives the present address the query that was kept for it, unless it has one of its own. */
export function restoreQuery() {
  const kept = currentUser() && !location.search && localStorage.getItem(keptName());
  if (kept) history.replaceState(history.state, "", location.pathname + kept);
}

/** Nothing is kept of one person for the next. */
addEventListener("person", () => {
  const isOthers = (name) => name.startsWith(KEPT) && !name.startsWith(`${KEPT}${currentUser()?.id}/`);
  for (const name of Object.keys(localStorage)) if (isOthers(name)) localStorage.removeItem(name);
});

/** The query of the present address. */
export const query = () => new URLSearchParams(location.search);

/** The present path with some names of its query changed: `null` and `""` take a name out. */
export function withQuery(changes) {
  const names = query();
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === "") names.delete(name);
    else names.set(name, value);
  }
  const text = names.toString();
  return location.pathname + (text && `?${text}`);
}

/** Goes to `withQuery(changes)`. With `replace`, as for what is being typed, there is no new entry in the history. */
export const setQuery = (changes, options) => go(withQuery(changes), options);

/** Finds the route of a path. A route's `path` is like `/console/files/:id`. Answers `{ route, params }` or `null`. */
export function match(routes, path) {
  for (const route of routes) {
    const found = new RegExp(`^${route.path.replace(":id", "(?<id>[^/]+)")}/*$`).exec(path);
    if (found) return { route, params: found.groups ? { id: decoded(found.groups.id) } : {} };
  }
  return null;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
