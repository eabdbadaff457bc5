// Addresses: which page belongs to which path, and going from one to another without loading the document again.

let show = () => {};

/**
 * Listens to the browser; `handler` is called whenever the address has changed, with `{ scroll }`, the pixels to which
 * the page was scrolled when it was left, where the person goes back or forward.
 */
export function startRouter(handler) {
  show = handler;
  history.scrollRestoration = "manual";
  addEventListener("popstate", (event) => show({ scroll: event.state?.scroll ?? 0 }));
  document.addEventListener("click", follow);
}

/** Follows links to pages of the console inside the document, unless the person wants another tab. */
function follow(event) {
  const link = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  const isConsole = url.pathname === "/console" || url.pathname.startsWith("/console/");
  if (url.origin !== location.origin || !isConsole || (url.hash && url.pathname === location.pathname)) return;
  event.preventDefault();
  go(url.pathname + url.search + url.hash);
}

/** Goes to an address of the console. `replace` leaves the present one out of the history. */
export function go(address, { replace = false } = {}) {
  const from = location.pathname + location.search;
  history.replaceState({ ...history.state, scroll: scrollY }, "");
  if (replace || address === from) history.replaceState({ from: history.state.from }, "", address);
  else history.pushState({ from }, "", address);
  if (!replace) scrollTo(0, 0);
  show();
}

/** The address that led to the present one where it is `path` with a query, or else `path`. */
export function wayBack(path) {
  const from = history.state?.from ?? "";
  return from.startsWith(`${path}?`) ? from : path;
}

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
export function setQuery(changes, options) {
  go(withQuery(changes), options);
}

/**
 * Finds the route of a path. A route's `path` is like `/console/files/:id`. Answers `{ route, params }` or `null`.
 */
export function match(routes, path) {
  const parts = path.replace(/\/+$/, "").split("/");
  for (const route of routes) {
    const names = route.path.split("/");
    if (names.length !== parts.length) continue;
    const params = {};
    const fits = names.every((name, index) => {
      if (!name.startsWith(":")) return name === parts[index];
      params[name.slice(1)] = decoded(parts[index]);
      return parts[index] !== "";
    });
    if (fits) return { route, params };
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
