// A list of one's own files, those that are there or those that were deleted: with search, type, order and pages in its
// address. It follows the changes of the files by itself.

import { get } from "./api.js";
import { buttonLink, load, pagesNav } from "./controls.js";
import { el } from "./dom.js";
import { service } from "./limits.js";
import { query as currentQuery, withQuery } from "./router.js";
import { asked, filters, leaveEmptyPage, numbered, pager, table } from "./tables.js";
import { texts } from "./texts.js";

const t = texts.files.list;

/**
 * A list of files for the page that is shown with `context`. `words` are the texts of an empty list, and `action()`
 * makes what stands below them; `query` is what the API is asked beside what the address says; `refreshed` is called
 * with each `refresh`; the rest are options of `table`. Answers `{ element, update(context), refresh() }`.
 */
export function fileList(context, /** @type {any} */ { words, query: more, action, refreshed = () => {}, ...options }) {
  const empty = () => emptyTexts(words, action);
  const list = table({ ...options, empty, keeps: true });
  const sorts = [options.sort.by, ...options.columns.map(({ sort }) => sort).filter(Boolean)];
  const place = el("div", { class: "files-list" });
  const bar = toolbar(context);
  const foot = pager({ hasSizes: true, refresh: () => refresh() });
  let latest = context;
  const fill = ({ query, signal }, isSilent) => load(place, {
    signal,
    isSilent,
    waiting: list.waiting(10),
    work: () => get("/uploads", { ...parametersOf(query, sorts), ...more }, signal),
    show: (answer) => (leaveEmptyPage(answer) ? [...place.childNodes]
      : [list.show(answer.items), foot.show(numbered(answer))]),
  });
  const update = (next) => {
    latest = next;
    bar.set(next.query);
    return fill(next);
  };
  const refresh = (isSilent = false) => {
    refreshed();
    return fill(latest, isSilent);
  };
  addEventListener("files", () => refresh(), { signal: context.leaving });
  const isShown = () => place.dataset.state === "shown";
  update(context).then(async () => {
    const { followChanges } = await import("./changes.js"); // the list does not wait for it
    followChanges(() => isShown() && refresh(true), context.leaving);
  });
  return { element: el("div", {}, bar.element, place), update, refresh };
}

/** The navigation between the list of files and that of deleted ones, where the service keeps these. */
export const filesNav = () => service.trashDays > 0 && pagesNav(t.navigation, [
  { href: "/console/files", label: t.entry },
  { href: "/console/files/deleted", label: texts.files.deleted.entry },
]);

/** A file's description below its name. */
export const descriptionOf = ({ description }) =>
  description && el("span", { class: "file-description cut", dir: "auto" }, description);

/** What the API is asked by an address. */
function parametersOf(query, sorts) {
  return { ...asked(query, { sorts }), search: query.get("search"), content_type: query.get("type") };
}

/** The fields for searching. A type that only the address names can be chosen too. */
function toolbar({ query }) {
  const types = new Set([...service.types, query.get("type")].filter(Boolean));
  return filters({
    label: t.search,
    fields: [
      { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true },
      { name: "type", label: t.type, type: "select",
        options: [["", t.any_type], ...[...types].map((type) => [type, texts.files.type(type)])] },
    ],
    also: ["page"],
  });
}

/** What an empty list says: there is nothing at all, or nothing that matches. */
function emptyTexts(words, action) {
  const query = currentQuery();
  if (query.has("search") || query.has("type")) {
    const all = withQuery({ search: null, type: null, page: null });
    return { title: words.nothing_title, text: words.nothing, action: buttonLink(words.show_all, all) };
  }
  return { title: words.none_title, text: words.none, action: action?.() };
}
