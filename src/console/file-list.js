// A list of one's own files, those that are there or those that were deleted: with search, type, order and pages in its
// address. It follows the changes of the files by itself.

import { get } from "./api.js";
import { buttonLink, load, pagesNav } from "./controls.js";
import { el } from "./dom.js";
import { loaded } from "./errors.js";
import { isPattern } from "./file-type.js";
import { formatNumber } from "./format.js";
import { service } from "./limits.js";
import { picks } from "./picks.js";
import { query as currentQuery, withQuery } from "./router.js";
import { asked, filters, leaveEmptyPage, numbered, pager, table } from "./tables.js";
import { texts } from "./texts.js";

const t = texts.files.list;
/** Files that are asked for at once, and most of them, where those of further pages are selected too. */
const BATCH = 100;
const MOST = 1000;

/**
 * A list of files for the page that is shown with `context`. `words` are the texts of an empty list, and `action()`
 * makes what stands below them; `query` is what the API is asked beside what the address says; `actions` are names of
 * what can be done with selected files; `refreshed` is called with each `refresh`; the rest are options of `table`.
 * Answers `{ element, update(context), refresh() }`.
 */
export function fileList(context,
  /** @type {any} */ { words, query: more, action, actions, refreshed = () => {}, ...options }) {
  const empty = () => emptyTexts(words, action);
  const picked = picks((selected) => showSelected(selected));
  const list = table({ ...options, columns: [picked.column, ...options.columns], empty, keeps: true });
  const sorts = [options.sort.by, ...options.columns.map(({ sort }) => sort).filter(Boolean)];
  const place = el("div", { class: "files-list" });
  const bar = toolbar(context);
  const foot = pager({ hasSizes: true });
  let latest = context;
  const ask = ({ query, signal }, other) =>
    get("/uploads", { ...parametersOf(query, sorts), ...more, ...other }, signal);
  const fill = (given, isSilent) => load(place, {
    signal: given.signal,
    isSilent,
    waiting: list.waiting(10),
    work: () => ask(given),
    show: (answer) => {
      if (leaveEmptyPage(answer)) return [...place.childNodes];
      list.show(answer.items);
      picked.show(answer);
      return [list.element, foot.show(numbered(answer))];
    },
  });
  const selectMore = async () => {
    const given = latest;
    const before = picked.unpicked();
    for (let page = 1, pages = MOST / BATCH; page <= Math.min(pages, MOST / BATCH); page += 1) {
      const answer = await ask(given, { page, size: BATCH });
      if (picked.unpicked() !== before) return; // the person does not want all of them any more
      picked.add(answer.items);
      pages = answer.pages;
    }
  };
  const said = el("p", { class: "visually-hidden", role: "status" });
  const showSelected = selectionIn(said, { tools: bar.element, actions, picked, most: MOST, selectMore });
  const update = (next) => {
    latest = next;
    picked.clear();
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
    const { followChanges } = await loaded(import("./changes.js")); // the list does not wait for it
    followChanges(() => isShown() && refresh(true), context.leaving);
  });
  return { element: el("div", {}, bar.element, said, place), update, refresh };
}

/** Answers a function that shows what is selected, in a bar that is loaded when it is needed, and says it in `said`. */
function selectionIn(said, options) {
  let bar = null;
  return async (selected) => {
    const count = selected.files.length;
    said.textContent = count ? texts.files.selection.count({ count: formatNumber(count) }) : "";
    if (count === 0 && !bar) return;
    bar ??= loaded(import("./selection.js")).then(({ selectionBar }) => selectionBar(options));
    bar.catch(() => { bar = null; });
    (await bar)(selected);
  };
}

/** Does one of the `ACTIONS` with a file. */
export const actOn = async (name, file) => (await loaded(import("./file-actions.js"))).act(name, [file]);

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
  const types = new Set([...service.types.filter((type) => !isPattern(type)), query.get("type")].filter(Boolean));
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
