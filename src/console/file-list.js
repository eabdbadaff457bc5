// A list of one's own files, those that are there or those that were deleted: with search, type, order and pages in its
// address. It follows the changes of the files by itself.

import { get, loaded, service } from "./api.js";
import { followChanges } from "./changes.js";
import { buttonLink, errorParts, load } from "./controls.js";
import { append, el, nameText, replace } from "./dom.js";
import { markOf } from "./file-marks.js";
import { isPattern } from "./file-type.js";
import { formatDate, formatNumber, timeText } from "./format.js";
import { picks } from "./picks.js";
import { query as currentQuery, withQuery } from "./router.js";
import { asked, filters, leaveEmptyPage, numbered, pager, table } from "./tables.js";
import { texts } from "./texts.js";
import { typeName } from "./texts/file-types.js";

const t = texts.files.list;
/** Files that are asked for at once, and most of them, where those of further pages are selected too. */
const BATCH = 100;
const MOST = 1000;

/**
 * A list of files for the page that is shown with `context`. `words` are the texts of an empty list, and `action()`
 * makes what stands below them; `query` is what the API is asked beside what the address says; `actions` are names of
 * what can be done with selected files; `lead` stands before the fields for searching; `refreshed` is called with each
 * `refresh`, and `listed(isNone)` with each answer, whether there are no files at all; the rest are options of `table`.
 * Answers `{ element, update(context), refresh() }`, where `refresh` is for what nobody has asked for.
 */
export function fileList(context, /** @type {any} */ given) {
  const { words, query: more, lead, action, actions, refreshed = () => {}, listed = () => {}, ...options } = given;
  const empty = () => emptyTexts(words, action);
  const picked = picks((selected) => showSelected(selected));
  const list = table({ ...options, columns: [picked.column, ...options.columns], empty, keeps: true });
  const sorts = [options.sort.by, ...options.columns.map(({ sort }) => sort).filter(Boolean)];
  const place = el("div", { class: "files-list" });
  const bar = toolbar(context);
  const tools = el("div", { class: "list-tools" }, lead, bar.element);
  const problem = el("div", { role: "status" });
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
      const isNone = answer.total === 0 && !isFiltered(given.query);
      bar.element.hidden = isNone && !bar.element.contains(document.activeElement);
      replace(problem);
      if (!more?.deleted) dispatchEvent(new CustomEvent("restored", { detail: answer.items }));
      list.show(answer.items);
      picked.show(answer);
      listed(isNone);
      return [list.element, !isNone && foot.show(numbered(answer))].filter(Boolean);
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
  const showSelected = selectionIn(said, { tools, actions, picked, most: MOST, selectMore });
  const update = (next) => {
    latest = next;
    replace(problem);
    picked.clear();
    bar.set(next.query);
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
  const isShown = () => place.dataset.state === "shown";
  followChanges(() => isShown() && renew(), context.leaving);
  update(context);
  return { element: el("div", {}, tools, said, problem, place), update, refresh };
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

/** The name of a file, in `link` where it is given, between the mark of its type and what else there is to say. */
export function nameCell(/** @type {any} */ file, link = el("span")) {
  return el("div", { class: "file-name" }, markOf(file),
    el("div", {}, append(link, nameText(file.filename)),
      file.is_public && [" ", el("span", { class: "badge is-accent" }, t.public)],
      file.description && el("span", { class: "file-description cut", dir: "auto" }, file.description)));
}

/** A moment, whose time of day stands only where there is room for it. */
export const momentCell = (moment) => [el("span", { class: "is-short" }, timeText(moment, formatDate)),
  el("span", { class: "nowrap" }, timeText(moment))];

const isFiltered = (query) => query.has("search") || query.has("type");

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
        options: [["", t.any_type], ...[...types].map((type) => [type, typeName(type)])] },
    ],
    also: ["page"],
  });
}

/** What an empty list says: there is nothing at all, or nothing that matches. */
function emptyTexts(words, action) {
  if (isFiltered(currentQuery())) {
    const all = withQuery({ search: null, type: null, page: null });
    return { title: words.nothing_title, text: words.nothing, action: buttonLink(words.show_all, all) };
  }
  return { title: words.none_title, text: words.none, action: action?.() };
}
