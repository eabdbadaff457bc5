// A list of one's own files, those that are there or those that were deleted: with search, type, order and pages in its
// address. It follows the changes of the files by itself.

import { get, service } from "./api.js";
import { followChanges } from "./changes.js";
import { buttonLink, errorParts, load } from "./controls.js";
import { append, el, nameText, replace } from "./dom.js";
import { isPattern } from "./file-type.js";
import { formatDate, timeText } from "./format.js";
import { markOf } from "./marks.js";
import { query as currentQuery, withQuery } from "./router.js";
import { selection } from "./selection.js";
import { asked, filters, leaveEmptyPage, numbered, pager, table } from "./tables.js";
import { typeName } from "./texts/file-types.js";
import { files as fileTexts } from "./texts/files.js";

const t = fileTexts.list;
/** In an address, in place of a type: what others have sent by a link. */
const RECEIVED = "received";
/**
 * A list of files for the page that is shown with `context`. `words` are the texts of an empty list, and `action()`
 * makes what stands below them; `query` is what the API is asked beside what the address says; `actions` are names of
 * what can be done with selected files; `lead` stands before the fields for searching, `above` before the files;
 * `refreshed` is called with each change, and `listed(isNone)` with each answer, whether there are no files at all;
 * `where(query)` is the part of the question that says in which folder; `mayBeNone()` whether an empty answer means
 * that; the rest are options of `table`. Answers `{ element, update(context), selected() }`, where the last one are the
 * selected files.
 */
export function fileList(context, /** @type {any} */ given) {
  const { words, query: more, lead, above, action, actions, refreshed = () => {}, listed = () => {}, where = () => ({}),
    mayBeNone = () => true, ...options } = given;
  const sorts = [options.sort.by, ...options.columns.map(({ sort }) => sort).filter(Boolean)];
  const form = searchForm(context);
  const tools = el("div", { class: "list-tools" }, lead, form.element);
  const ask = ({ query, signal }, other) => get("/uploads", { ...asked(query, { sorts }), search: query.get("search"),
    ...kindOf(query.get("type")), ...where(query), ...more, ...other }, signal);
  let latest = context;
  const selected = selection({ tools, actions, ask: (other) => ask(latest, other) });
  const empty = () => emptyTexts(words, mayBeNone(), action);
  const list = table({ ...options, columns: [selected.column, ...options.columns], empty, keeps: true });
  const place = el("div", { class: "files-list" });
  const problem = el("div", { role: "status" });
  const foot = pager({ hasSizes: true });
  const fill = (given, isSilent) => load(place, {
    signal: given.signal,
    isSilent,
    waiting: list.waiting(10),
    work: () => ask(given),
    show: (answer) => {
      if (leaveEmptyPage(answer)) return [...place.childNodes];
      const isNone = answer.total === 0 && !isFiltered(given.query) && mayBeNone();
      form.element.hidden = isNone && !form.element.contains(document.activeElement);
      replace(problem);
      if (!more?.deleted) dispatchEvent(new CustomEvent("restored", { detail: answer.items }));
      // What was found says where it lies, so its row is another one than in the list of its folder.
      list.show(isFiltered(given.query) ? answer.items.map((file) => ({ ...file, isFound: true })) : answer.items);
      selected.show(answer);
      listed(isNone);
      return [list.element, !isNone && foot.show(numbered(answer))];
    },
  });
  const update = (next) => {
    latest = next;
    replace(problem);
    selected.clear();
    form.set(next.query);
    return fill(next);
  };
  const renew = async () => {
    refreshed();
    try {
      await fill(latest, true);
    } catch (error) {
      const parts = errorParts(error, { ended: refresh, isAutomatic: true });
      replace(problem, el("div", { class: "note is-warn" }, el("p", {}, t.stale, " ", parts)));
      throw error;
    }
  };
  const refresh = () => renew().catch(() => {}); // that is said above the list
  addEventListener("files", () => refresh(), { signal: context.leaving });
  followChanges(() => place.dataset.state === "shown" && renew(), context.leaving);
  update(context);
  return { element: el("div", {}, tools, selected.bar, problem, above, place), update, selected: selected.files };
}

/**
 * The name of a file, in `link` where it is given, between the mark of its type and what else there is to say. `folder`
 * is where it lies, if the list does not say so.
 */
export function nameCell(/** @type {any} */ file, link = el("span"), mark = markOf(file), folder = undefined) {
  return el("div", { class: "file-name" }, mark,
    el("div", {}, append(link, nameText(file.filename)),
      file.is_public && [" ", el("span", { class: "badge is-accent" }, t.public)],
      file.received_by && [" ", el("span", { class: "badge" }, t.received)],
      folder && el("span", { class: "file-description cut" }, folder),
      file.description && el("span", { class: "file-description cut" }, nameText(file.description))));
}

/** A moment, whose time of day stands only where there is room for it. */
export const momentCell = (moment) => [el("span", { class: "is-short" }, timeText(moment, formatDate)),
  el("span", { class: "nowrap" }, timeText(moment))];

export const isFiltered = (query) => query.has("search") || query.has("type");

/** What the API is asked for files of a type, or for those that have come by a link. */
const kindOf = (type) => (type === RECEIVED ? { received: true } : { content_type: type });

/** The fields for searching. A type that only the address names can be chosen too. */
function searchForm({ query }) {
  const types = new Set([...service.types.filter((type) => !isPattern(type)), query.get("type")].filter(Boolean));
  types.delete(RECEIVED);
  return filters({
    label: t.search,
    fields: [
      { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true },
      { name: "type", label: t.type, type: "select",
        options: [["", t.any_type], [RECEIVED, t.received], ...[...types].map((type) => [type, typeName(type)])] },
    ],
  });
}

/** What an empty list says: there is nothing at all, or nothing that matches. */
function emptyTexts(words, isNone, action) {
  if (isFiltered(currentQuery())) {
    const all = withQuery({ search: null, type: null, page: null });
    return { title: words.nothing_title, text: words.nothing, action: buttonLink(words.show_all, all) };
  }
  const { none_title: title, none: text, empty_title: emptyTitle, empty: emptyText } = words;
  return isNone ? { title, text, action: action?.() } : { title: emptyTitle, text: emptyText, action: action?.() };
}
