// Tables that sort, become cards on narrow screens, and keep their height while they load.

import { emptyState, skeleton } from "./controls.js";
import { append, el, hiddenText, icon, replace } from "./dom.js";
import { formatNumber } from "./format.js";
import { query, setQuery, withQuery } from "./router.js";
import { texts } from "./texts.js";

/**
 * A table, whose parts have their roles as attributes too: as cards they lose those that browsers give them. Options:
 * - `caption`: what the table holds, for screen readers;
 * - `columns`: `{ label, cell(row), sort, align, main, hideLabel }`: `cell` answers a node, text or number; `sort` is
 *   the API's name of that order; `align: "end"` for figures; `main` is the cell that names the row (a row header);
 *   `hideLabel` leaves the label to screen readers, as for buttons;
 * - `sort`: `{ by, order }` in use where the address says nothing; `names`: the names of the address's query,
 *   `{ by: "sort_by", order: "sort_order" }` unless told;
 * - `empty`: `{ title, text, action }` shown where there are no rows;
 * - `keeps`: rows whose data are the same as before stay as they are, with the focus and what is selected.
 *
 * Answers `{ element, show(rows), waiting(rows) }`; `show` may be called again, as for another page of the list.
 */
export function table({ caption, columns, sort, names = { by: "sort_by", order: "sort_order" }, empty,
  keeps = false }) {
  const heads = columns.map((column) => headOf(column, names));
  const body = el("tbody", { role: "rowgroup" });
  const grid = el("table", { class: "table", role: "table" }, el("caption", { class: "visually-hidden" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads.map(({ element }) => element))), body);
  const nothing = el("div", { hidden: true });
  let drawn = new Map();
  const drawRow = (row) => el("tr", { role: "row" }, columns.map((column) => cellOf(column, row)));
  const show = (rows) => {
    for (const head of heads) head.update(currentSort(columns, sort, names));
    const pairs = rows.map((row) => {
      const data = JSON.stringify(row);
      return [data, (keeps && drawn.get(data)) || drawRow(row)];
    });
    drawn = new Map(pairs);
    replace(body, pairs.map(([, line]) => line));
    grid.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
    if (!rows.length) {
      const { title, text, action } = typeof empty === "function" ? empty() : empty;
      replace(nothing, emptyState(title, text, action));
    }
    return element;
  };
  const element = el("div", { class: "table-place" }, grid, nothing);
  return { element, show, waiting: (rows = 5) => skeleton(rows + 1) };
}

function currentSort(columns, sort, names) {
  const given = query();
  const asked = columns.find((column) => column.sort && column.sort === given.get(names.by));
  const by = asked?.sort ?? sort?.by;
  return { by, order: given.get(names.order) ?? (by === sort?.by ? sort?.order : "asc") ?? "asc" };
}

/** The head of a column: a link to the same page in that column's order, or in the other direction. */
function headOf({ label, sort, align, hideLabel }, names) {
  const element = el("th", { scope: "col", role: "columnheader", class: align === "end" ? "end" : "" });
  if (!sort) {
    append(element, hideLabel ? hiddenText(label) : label);
    return { element, update() {} };
  }
  const arrow = el("span", { class: "sort-arrow", "aria-hidden": "true" });
  const link = el("a", { class: "sort", href: location.pathname }, label, arrow);
  append(element, link);
  return {
    element,
    update({ by, order }) {
      const isUsed = by === sort;
      const next = isUsed && order === "asc" ? "desc" : "asc";
      link.setAttribute("href", withQuery({ [names.by]: sort, [names.order]: next, page: null }));
      replace(arrow, isUsed && icon(order === "asc" ? "up" : "down"));
      if (isUsed) element.setAttribute("aria-sort", order === "asc" ? "ascending" : "descending");
      else element.removeAttribute("aria-sort");
    },
  };
}

function cellOf({ label, cell, align, main, hideLabel }, row) {
  const attributes = { class: [align === "end" && "end", hideLabel && "tools"].filter(Boolean).join(" ") };
  const content = cell(row);
  if (main) return el("th", { scope: "row", role: "rowheader", ...attributes }, content);
  return el("td", { role: "cell", ...attributes, data: hideLabel ? {} : { label } }, content);
}

/** The value of the query with this name, or `null` where it is none of those that the API takes. */
export const oneOf = (given, name, allowed) => (allowed.includes(given.get(name)) ? given.get(name) : null);

/**
 * The page and the order that an address asks the API for, without what the API would refuse, as in an address that was
 * changed by hand. `sorts` are the names of orders, of which the service uses the first where none is asked for.
 */
export function asked(given, { sorts, size }) {
  const by = oneOf(given, "sort_by", sorts);
  const order = oneOf(given, "sort_order", ["asc", "desc"]) ?? (by && by !== sorts[0] ? "asc" : null);
  const page = /^[1-9]\d{0,15}$/.test(given.get("page")) ? given.get("page") : 1;
  return { sort_by: by, sort_order: order, page, size };
}

/** Goes to the last page from one behind it, as after rows were deleted; answers whether it does. */
export function leaveEmptyPage({ page, pages }) {
  const isPast = page > Math.max(pages, 1);
  if (isPast) setQuery({ page: pages > 1 ? pages : null }, { replace: true });
  return isPast;
}

/**
 * Links to the pages of a list: `page` from 1, `pages`, `total` and the `size` of a page. The links change `page` in
 * the address. Nothing but the number of rows is shown where there is one page.
 */
export function pager({ page, pages, total, size }) {
  const first = Math.min((page - 1) * size + 1, total);
  const range = texts.range({ first: formatNumber(first), last: formatNumber(Math.min(page * size, total)),
    total: formatNumber(total) });
  const element = el("nav", { class: "pager", "aria-label": texts.pages }, el("p", { role: "status" }, range));
  if (pages <= 1 && page === 1) return element;
  return append(element, el("div", { class: "pager-links" },
    step(texts.previous, "left", page > 1 && Math.min(page - 1, pages)),
    el("span", { class: "pager-page" }, texts.page_of({ page: formatNumber(page), pages: formatNumber(pages) })),
    step(texts.next, "right", page < pages && page + 1)));
}

function step(label, drawing, target) {
  const content = drawing === "left" ? [icon(drawing), label] : [label, icon(drawing)];
  const href = target && withQuery({ page: target === 1 ? null : target });
  return target
    ? el("a", { class: "button", href, data: { step: drawing } }, content)
    : el("span", { class: "button is-off", "aria-hidden": "true" }, content);
}
