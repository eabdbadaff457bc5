// A list of one's own files, those that are there or those that were deleted: with search, type, order and pages in its
// address. It follows the changes of the files by itself.

import { get } from "./api.js";
import { followChanges } from "./changes.js";
import { buttonLink, load, pagesNav } from "./controls.js";
import { el } from "./dom.js";
import { field } from "./forms.js";
import { service } from "./limits.js";
import { query as currentQuery, setQuery, withQuery } from "./router.js";
import { asked, leaveEmptyPage, pager, table } from "./tables.js";
import { texts } from "./texts.js";

const t = texts.files.list;
/** Files of a page. */
const SIZE = 25;
/** Milliseconds of rest in typing after which the search begins. */
const REST = 300;

/**
 * A list of files for the page that is shown with `context`. `words` are the texts of an empty list, and `action()`
 * makes what stands below them; `query` is what the API is asked beside what the address says; `refreshed` is called
 * with each `refresh`; the rest are options of `table`. Answers `{ element, update(context), refresh() }`.
 */
export function fileList(context, { words, query: more, action, refreshed = () => {}, ...options }) {
  const empty = () => emptyTexts(words, action);
  const list = table({ ...options, empty, keeps: true });
  const sorts = [options.sort.by, ...options.columns.map(({ sort }) => sort).filter(Boolean)];
  const place = el("div", { class: "files-list" });
  const bars = toolbar();
  let latest = context;
  let steps = {};
  const stepsOf = ({ page, pages, total, size }) => {
    const key = [page, pages, total, size, location.search].join();
    if (steps.key !== key) steps = { key, element: pager({ page, pages, total, size }) };
    return steps.element;
  };
  const fill = ({ query, signal }, isSilent) => load(place, {
    signal,
    isSilent,
    waiting: list.waiting(10),
    work: () => get("/uploads", { ...parametersOf(query, sorts), ...more }, signal),
    show: (answer) => (leaveEmptyPage(answer) ? [...place.childNodes]
      : [list.show(answer.items), answer.total > 0 && stepsOf(answer)]),
  });
  const update = (next) => {
    latest = next;
    bars.update(next.query);
    return fill(next);
  };
  const refresh = (isSilent = false) => {
    refreshed();
    return fill(latest, isSilent);
  };
  addEventListener("files", () => refresh(), { signal: context.leaving });
  const isShown = () => place.dataset.state === "shown";
  update(context).then(() => followChanges(() => isShown() && refresh(true), context.leaving));
  return { element: el("div", {}, bars.element, place), update, refresh };
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
  const list = asked(query, { sorts, size: SIZE });
  return { ...list, search: query.get("search"), content_type: query.get("type") };
}

/** The fields for searching, which go by the address: what is typed changes it after a rest, and it changes them. */
function toolbar() {
  const search = field({ name: "search", label: t.search, type: "search", placeholder: t.search_hint, optional: false,
    autocomplete: "off" });
  const type = field({ name: "type", label: t.type, type: "select", options: [["", t.any_type]], optional: false });
  let timer = null;
  const apply = (options) => {
    clearTimeout(timer);
    const wanted = search.value();
    if (wanted !== (currentQuery().get("search") ?? "")) setQuery({ search: wanted, page: null }, options);
  };
  search.input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search.input.isConnected && apply({ replace: true }), REST);
  });
  type.input.addEventListener("change", () => setQuery({ type: type.value(), page: null }));
  search.element.classList.add("is-wide");
  const element = el("form", { class: "toolbar", role: "search", novalidate: true }, search.element, type.element);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  for (const one of service.types) {
    const isKnown = [...type.input.options].some(({ value }) => value === one);
    if (!isKnown) type.input.append(el("option", { value: one }, texts.files.type(one)));
  }
  const update = (query) => {
    const wanted = query.get("search") ?? "";
    if (search.value() !== wanted) search.set(wanted);
    if (query.get("type")) offer([query.get("type")]);
    type.set(query.get("type") ?? "");
  };
  return { element, update };
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
