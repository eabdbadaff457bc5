// Plots of figures a day, drawn by hand as SVG, with the figures as a table beside them.

import { el, replace, svg } from "./dom.js";
import { formatBytes, formatDay, formatNumber } from "./format.js";
import { texts } from "./texts.js";

/** Pixels. The drawing is as wide as its place, and drawn anew when that changes, so its texts keep their size. */
const HEIGHT = 160;
const LEFT = 52;
const BOTTOM = 20;
const TOP = 8;

/**
 * A plot. Options: `title`; `points`: a list of `{ date, value }`, oldest first, `date` like `2026-01-31`; `kind`:
 * `bars` or `line`; `format(value)`: how figures read, `formatNumber` unless told. Answers a `<figure>`: the drawing is
 * for eyes, and the same figures stand in a table that can be opened.
 */
export function plot({ title, points, kind = "bars", format = formatNumber }) {
  const total = points.reduce((sum, { value }) => sum + value, 0);
  const caption = el("figcaption", {}, el("span", { class: "plot-title" }, title),
    el("span", { class: "plot-total" }, format(total)));
  return el("figure", { class: "plot" }, caption, drawingPlace({ points, kind, format }),
    figures({ title, points, format }));
}

function drawingPlace(options) {
  const place = el("div", { class: "plot-drawing", "aria-hidden": "true" });
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width) replace(place, drawing({ ...options, width: contentRect.width }));
  }).observe(place);
  return place;
}

function drawing({ points, kind, format, width }) {
  const top = roundUp(Math.max(0, ...points.map(({ value }) => value)), format === formatBytes ? 1024 : 1000);
  const x = (index) => LEFT + ((width - LEFT) * index) / Math.max(1, points.length);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const lines = [0, top / 2, top].map((value) => [
    svg("line", { class: "plot-grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
    svg("text", { class: "plot-label", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
  const marks = kind === "line" ? line(points, x, y) : bars(points, x, y, format);
  return svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}` }, lines, marks, days(points, x, width));
}

function bars(points, x, y, format) {
  const width = Math.max(1, (x(1) - x(0)) * 0.72);
  return points.map(({ date, value }, index) => svg("g", { class: "plot-bar" },
    svg("title", {}, `${formatDay(date)}: ${format(value)}`),
    svg("rect", { class: "plot-hit", x: x(index), y: TOP, width: x(1) - x(0), height: HEIGHT - TOP - BOTTOM }),
    value > 0 && svg("rect", { x: x(index), y: Math.min(y(value), y(0) - 1), width, rx: Math.min(2, width / 2),
      height: Math.max(1, y(0) - y(value)) })));
}

function line(points, x, y) {
  const middle = (x(1) - x(0)) / 2;
  const path = points.map(({ value }, index) => `${index ? "L" : "M"}${x(index) + middle} ${y(value)}`).join("");
  return svg("path", { class: "plot-line", d: path });
}

/** The names of the first, the middle and the last day. */
function days(points, x, width) {
  if (!points.length) return null;
  const last = points.length - 1;
  const shown = last > 3 && width > 360 ? [0, Math.round(last / 2), last] : [0, last];
  return [...new Set(shown)].map((index, place, list) => svg("text", {
    class: "plot-label",
    x: place === list.length - 1 && place > 0 ? width : x(index),
    y: HEIGHT - 4,
    "text-anchor": place === 0 ? "start" : place === list.length - 1 ? "end" : "middle",
  }, formatDay(points[index].date)));
}

/** The next even number that reads well, at least 2; `unit` is 1,024 where the figures are bytes, or else 1,000. */
function roundUp(value, unit) {
  let power = 1;
  while (power * unit <= value) power *= unit;
  const factors = [2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800, 1000, 2 * unit];
  return factors.map((factor) => factor * power).find((candidate) => candidate >= value);
}

function figures({ title, points, format }) {
  const rows = [...points].reverse().map(({ date, value }) =>
    el("tr", {}, el("th", { scope: "row" }, formatDay(date)), el("td", { class: "end" }, format(value))));
  return el("details", { class: "plot-figures" }, el("summary", {}, texts.figures),
    el("div", { class: "plot-table", tabindex: "0", role: "region", "aria-label": title },
      el("table", { class: "table is-plain" }, el("caption", { class: "visually-hidden" }, title),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, texts.day),
          el("th", { scope: "col", class: "end" }, texts.figure))), el("tbody", {}, rows))));
}
