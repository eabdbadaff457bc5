// Lists: filters above them, tables that sort and become cards on narrow screens, and the pages below them. The address
// holds what is set, so that it can be linked to, and the router remembers it.

import { ApiError } from "./api.js";
import { emptyState, iconButton, skeleton } from "./controls.js";
import { el, focusOn, hiddenText, icon, replace } from "./dom.js";
import { formatNumber } from "./format.js";
import { field } from "./forms.js";
import { notifyError } from "./frame.js";
import { query, setQuery, withQuery } from "./router.js";
import { texts } from "./texts.js";

/** Milliseconds of rest in typing after which a filter acts. */
const REST = 300;
/** How many rows a page may have, and has unless told. */
const SIZES = ["25", "50", "100"];

/**
 * A table, whose parts have their roles as attributes too: as cards they lose those that browsers give them. Options:
 * - `caption`: what the table holds, for screen readers;
 * - `columns`: `{ label, cell(row), sort, align, main, hideLabel, head }`: `cell` answers a node, text or number;
 *   `sort` is the API's name of that order; `align: "end"` for figures; `main` is the cell that names the row (a row
 *   header); `hideLabel` leaves the label to screen readers, as for buttons; `head` stands in place of the label;
 * - `sort`: `{ by, order }` in use where the address says nothing;
 * - `empty`: `{ title, text, action }` shown where there are no rows;
 * - `keeps`: rows whose data are the same as before stay as they are, with the focus and what is selected. The focus of
 *   a row that goes moves to what is alike, by its `data-key`, in the row after it or else before it.
 *
 * Answers `{ element, show(rows), waiting(rows) }`; `show` may be called again, as for another page of the list.
 */
export function table(/** @type {any} */ { caption, columns, sort, empty, keeps = false }) {
  const heads = columns.map(headOf);
  const sorter = sort && sorterOf(columns);
  const body = el("tbody", { role: "rowgroup" });
  const grid = el("table", { class: "table", role: "table" }, el("caption", { class: "visually-hidden" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads.map(({ element }) => element))), body);
  const nothing = el("div", { hidden: true });
  let drawn = new Map();
  const drawRow = (row) => el("tr", { role: "row" }, columns.map((column) => cellOf(column, row)));
  const show = (rows) => {
    for (const each of [...heads, sorter ?? []].flat()) each.update(currentSort(columns, sort));
    const pairs = rows.map((row) => {
      const data = JSON.stringify(row);
      return [data, (keeps && drawn.get(data)) || drawRow(row)];
    });
    drawn = new Map(pairs);
    const focused = keeps && body.contains(document.activeElement) && document.activeElement;
    const before = focused && [...body.rows];
    replace(body, pairs.map(([, line]) => line));
    if (focused && !focused.isConnected) focusBeside(focused, before);
    grid.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
    if (!rows.length) {
      const { title, text, action } = typeof empty === "function" ? empty() : empty;
      replace(nothing, emptyState(title, text, action));
    }
    return element;
  };
  const element = el("div", { class: "table-place" }, sorter?.element, grid, nothing);
  return { element, show, waiting: (rows = 5) => skeleton(rows + 1) };
}

/** Moves the focus on from something in a row that has gone, where `rows` are all that there were. */
function focusBeside(focused, rows) {
  const { key } = focused.dataset;
  const at = rows.findIndex((row) => row.contains(focused));
  const isSame = key && document.querySelector(`[data-key="${key}"]`);
  const next = [...rows.slice(at + 1), ...rows.slice(0, at).reverse()].find((row) => row.isConnected);
  if (key && !isSame) focusOn(next?.querySelector(`[data-key^="${key.split("-")[0]}-"]`), { preventScroll: true });
}

function currentSort(columns, sort) {
  const given = query();
  const asked = columns.find((column) => column.sort && column.sort === given.get("sort_by"));
  const by = asked?.sort ?? sort?.by;
  return { by, order: given.get("sort_order") ?? (by === sort?.by ? sort?.order : "asc") ?? "asc" };
}

/** The head of a column: a link to the same page in that column's order, or in the other direction. */
function headOf({ label, sort, align, hideLabel, head }) {
  const arrow = el("span", { class: "sort-arrow", "aria-hidden": "true" });
  const link = sort && el("a", { class: "sort", href: location.pathname }, label, arrow);
  const element = el("th", { scope: "col", role: "columnheader", class: align === "end" ? "end" : "" },
    link ?? head ?? (hideLabel ? hiddenText(label) : label));
  return {
    element,
    update({ by, order }) {
      if (!link) return;
      const isUsed = by === sort;
      const next = isUsed && order === "asc" ? "desc" : "asc";
      link.href = withQuery({ sort_by: sort, sort_order: next, page: null });
      replace(arrow, isUsed && icon(order === "asc" ? "up" : "down"));
      const direction = order === "asc" ? "ascending" : "descending";
      element.ariaSort = isUsed ? direction : null;
    },
  };
}

/** What is compared in an order of the API's. */
const kindOf = (sort) => (/date$|_at$|login$/.test(sort) ? "time" : /size$|used$/.test(sort) ? "size" : "text");

/** The orders as a list to choose from, in place of the heads of the columns, which narrow screens do not show. */
function sorterOf(columns) {
  const options = columns.filter(({ sort }) => sort).flatMap(({ label, sort }) =>
    ["asc", "desc"].map((order) => [`${sort} ${order}`, texts.sorted({ label, order, kind: kindOf(sort) })]));
  const { element, input, set } = field({ name: "sort", label: texts.sort, type: "select", options, optional: false });
  element.classList.add("sorter");
  input.addEventListener("change", () => {
    const [by, order] = input.value.split(" ");
    setQuery({ sort_by: by, sort_order: order, page: null });
  });
  return { element, update: ({ by, order }) => set(`${by} ${order}`) };
}

function cellOf({ label, cell, align, main, hideLabel }, row) {
  const attributes = { class: [align === "end" && "end", hideLabel && "tools"].filter(Boolean).join(" ") };
  const content = cell(row);
  if (main) return el("th", { scope: "row", role: "rowheader", ...attributes }, content);
  return el("td", { role: "cell", ...attributes, "data-label": !hideLabel && label }, content);
}

/** The value of the query with this name, or `null` where it is none of those that the API takes. */
export const oneOf = (given, name, allowed) => (allowed.includes(given.get(name)) ? given.get(name) : null);

/**
 * The page and the order that an address asks the API for, without what the API would refuse, as in an address that was
 * changed by hand. `sorts` are the names of orders, of which the service uses the first where none is asked for.
 */
export function asked(given, { sorts }) {
  const by = oneOf(given, "sort_by", sorts);
  const order = oneOf(given, "sort_order", ["asc", "desc"]) ?? (by && by !== sorts[0] ? "asc" : null);
  const page = /^[1-9]\d{0,15}$/.test(given.get("page")) ? given.get("page") : 1;
  return { sort_by: by, sort_order: order, page, size: oneOf(given, "size", SIZES) ?? SIZES[0] };
}

/** Goes to the last page from one behind it, as after rows were deleted; answers whether it does. */
export function leaveEmptyPage({ page, pages }) {
  const isPast = page > Math.max(pages, 1);
  if (isPast) setQuery({ page: pages > 1 ? pages : null }, { replace: true });
  return isPast;
}

/**
 * A row of fields, whose `name`s are those of the address's query. A choice acts at once, a text or a date after a rest
 * in typing, and all of them at Enter. Options:
 * - `label`: what the form is for; `fields`: descriptions as in `forms.js`, and `isWide`; a text that `isWhole` acts
 *   only once it has been left, because half of it means something else; those that are `isMore` are folded under the
 *   word `more` until one of them is set;
 * - `shown(name, text)`: what a field shows for a text of the query; `sent(name, text)`: the text of the query for what
 *   was typed, which may throw an `ApiError` for the field. Both may answer a promise; unless told they change nothing.
 *
 * Answers `{ element, set(query), apply() }`; `set` shows what the query holds; `apply` lets the query hold what the
 * fields show, and answers whether it does.
 */
export function filters({ label, fields, more = "", shown = (name, text) => text, sent = (name, text) => text }) {
  const made = fields.map(({ isWide, isWhole, isMore = false, ...description }) => {
    const item = field({ optional: false, autocomplete: "off", ...description });
    item.element.classList.toggle("is-wide", Boolean(isWide));
    actOn(item.input, isWhole, (options) => apply(options));
    return { ...item, isMore };
  });
  // Another filter begins at the first page, by whichever name the list has its pages.
  const none = Object.fromEntries([...made.map(({ name }) => name), "page", "before"].map((name) => [name, null]));
  const clear = el("a", { class: "button quiet", on: { click: () => made[0].input.focus() } }, texts.clear);
  const shownOf = (wanted) => made.filter(({ isMore }) => isMore === wanted).map((item) => item.element);
  const folded = el("details", { class: "more", hidden: !more }, el("summary", {}, more),
    el("div", { class: "toolbar" }, shownOf(true)));
  const element = el("form", { class: more ? "toolbar is-many" : "toolbar", role: "search",
    "aria-label": label, novalidate: true }, shownOf(false), folded, clear);
  let turns = 0;
  let newest = null;
  let taken = null; // what the fields held that the address takes over
  const apply = (options = {}) => (newest = takeOver(options));
  async function takeOver({ isTyping = false }) {
    const half = made.find(({ input }) => input.validity.badInput);
    if (half && isTyping) return false;
    const turn = (turns += 1);
    const held = made.map((item) => item.value());
    try {
      if (half) throw new ApiError({ status: 422, fields: { [half.name]: texts.incomplete } });
      const values = await Promise.all(made.map(async ({ name, value, written }) =>
        [name, value() === written ? query().get(name) ?? "" : await sent(name, value())]));
      const isNews = values.some(([name, text]) => text !== (query().get(name) ?? ""));
      if (turn !== turns) return newest;
      if (isNews && element.isConnected) {
        taken = held;
        setQuery({ ...none, ...Object.fromEntries(values) }, { replace: isTyping });
        taken = null;
      }
      return element.isConnected;
    } catch (error) {
      if (turn !== turns) return newest;
      const wrong = made.find(({ name }) => error instanceof ApiError && error.fields[name]);
      if (!wrong) notifyError(error);
      wrong?.error(error.fields[wrong.name]);
      if (!isTyping) wrong?.input.focus();
      return false;
    }
  }
  const set = (given) => {
    // A field into which the person has typed more since, while another one was looked up, stays as it is.
    const isSettled = (item, at) => !taken || item.value() === taken[at];
    for (const item of made.filter(isSettled)) fill(item, shown(item.name, given.get(item.name) ?? ""), given);
    folded.open ||= made.some(({ name, isMore }) => isMore && given.has(name));
    clear.hidden = !made.some(({ name }) => given.has(name));
    clear.setAttribute("href", withQuery(none));
  };
  return { element, set, apply };
}

/**
 * Shows in a field what the query `given` says, `text`, which may be a promise. What is being typed stays as it is.
 * `written` is what was shown last: a field that still holds it was not changed, and is not sent anew.
 */
function fill(item, text, given) {
  const write = (words) => {
    if (item.value() !== words) item.set(words);
    item.written = item.value();
  };
  const isLatest = () => given.toString() === query().toString() && item.value() === item.written;
  item.error("");
  write(text instanceof Promise ? item.value() : text);
  if (text instanceof Promise) text.then((words) => isLatest() && write(words));
}

/** Calls `apply` when a field has been changed. With `isTyping` there may be more to come. */
function actOn(input, isWhole, apply) {
  const isTyped = input.localName === "input" && !isWhole;
  let timer = null;
  input.addEventListener(isTyped ? "input" : "change", () => {
    clearTimeout(timer);
    if (isTyped) timer = setTimeout(apply, REST, { isTyping: true });
    else apply();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || input.localName !== "input") return;
    event.preventDefault();
    clearTimeout(timer);
    apply();
  });
}

/**
 * What stands below a list: how much of it is shown, which is read out when it changes, a button that asks for it again
 * unless it `isFixed`, how many rows a page has where it `hasSizes`, and the ways to other pages. It stays while `show`
 * is called with each answer, as by `numbered`: `{ said, steps, size, total }`. Answers `{ element, show }`.
 */
export function pager(/** @type {any} */ { label = texts.pages, isFixed = false, hasSizes = false } = {}) {
  const range = el("p", { role: "status" });
  const again = !isFixed && iconButton(texts.refresh, "refresh", { act: () => setQuery({}, { replace: true }) });
  const rows = field({ name: "size", label: texts.rows, type: "select", options: SIZES.map((size) => [size, size]),
    optional: false });
  rows.element.classList.add("pager-size");
  rows.input.addEventListener("change", () => setQuery({ size: rows.value(), page: null }));
  // Whoever goes to another page begins at its top.
  const click = ({ target }) => target.closest("a") && focusOn(null, { preventScroll: true });
  const links = el("div", { class: "pager-links", on: { click } });
  let drawn = null;
  const element = el("nav", { class: "pager", "aria-label": label }, range, again, hasSizes && rows.element, links);
  const show = (/** @type {any} */ { said, steps, size, total }) => {
    const wanted = said + location.search;
    if (drawn === wanted) return element;
    drawn = wanted;
    range.textContent = said;
    range.classList.toggle("visually-hidden", total === 0);
    rows.show(total > SIZES[0]);
    rows.set(size);
    replace(links, steps);
    return element;
  };
  return { element, show };
}

/** What `show` of `pager` is given for a page of a list: `page` from 1, `pages`, `total` and the `size` of a page. */
export function numbered({ page, pages, total, size }) {
  const first = Math.min((page - 1) * size + 1, total);
  const range = { first: formatNumber(first), last: formatNumber(Math.min(page * size, total)),
    total: formatNumber(total) };
  const steps = (pages > 1 || page > 1) && [
    step(texts.first, "first", page > 1 && 1),
    step(texts.previous, "left", page > 1 && Math.min(page - 1, pages)),
    el("span", { class: "pager-page" }, texts.page_of({ page: formatNumber(page), pages: formatNumber(pages) })),
    step(texts.next, "right", page < pages && page + 1),
    step(texts.last, "last", page < pages && pages),
  ];
  return { said: total ? texts.range(range) : texts.nothing, steps, size, total };
}

function step(label, drawing, target) {
  const isEnd = drawing === "first" || drawing === "last";
  const content = isEnd ? icon(drawing) : drawing === "left" ? [icon(drawing), label] : [label, icon(drawing)];
  const look = `button ${isEnd ? "icon-only" : ""}`;
  if (!target) return el("span", { class: `${look} is-off`, "aria-hidden": "true" }, content);
  return el("a", { class: look, href: withQuery({ page: target === 1 ? null : target }), "data-key": drawing,
    "aria-label": isEnd && label, title: isEnd && label }, content);
}
