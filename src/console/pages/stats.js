// The figures of the whole service: the totals of this moment, and what came day by day, in plots drawn by hand as SVG.

import { get } from "../api.js";
import { load, pageHead, section, skeleton } from "../controls.js";
import { el, replace, svg } from "../dom.js";
import { formatBytes, formatDay, formatNumber } from "../format.js";
import { withQuery } from "../router.js";
import { texts } from "../texts.js";
import { admin } from "../texts/admin.js";

const t = admin.stats;

const RANGES = [7, 30, 90, 365];
const DEFAULT_RANGE = 30;
/** From this number of days on, lines read better than bars. */
const MANY_DAYS = 120;
/** Pixels. The drawing is as wide as its place, and drawn anew when that changes, so its texts keep their size. */
const HEIGHT = 160;
const LEFT = 52;
const BOTTOM = 20;
const TOP = 8;

export function show(context) {
  const totals = el("div", {});
  const links = RANGES.map((range) => [range, el("a", {}, t.days({ days: range }))]);
  const ranges = el("nav", { class: "segments", "aria-label": t.range }, links.map(([, link]) => link));
  const daily = el("div", {});
  const version = el("p", { class: "section small soft" });
  load(totals, {
    signal: context.leaving,
    waiting: el("div", { class: "tiles" }, [1, 2, 3].map(() => el("div", { class: "tile" }, skeleton(2)))),
    work: () => get("/admin/stats", {}, context.leaving),
    show: (stats) => {
      replace(version, t.version(stats));
      return tiles(stats);
    },
  });
  const update = ({ query, signal }) => {
    const days = RANGES.find((range) => String(range) === query.get("days")) ?? DEFAULT_RANGE;
    for (const [range, link] of links) {
      link.setAttribute("href", withQuery({ days: range === DEFAULT_RANGE ? null : range }));
      link.ariaCurrent = range === days ? "true" : null;
    }
    return load(daily, {
      signal,
      waiting: plots(() => el("div", { class: "plot is-waiting" }, skeleton(3))),
      work: () => get("/admin/stats/daily", { days }, signal),
      show: (answer) => plots((name) => plot(name, answer.days)),
    });
  };
  update(context);
  const element = el("div", {}, pageHead(t.title, { lead: t.lead }), totals,
    section(t.daily, { lead: t.daily_lead, actions: [ranges] }, daily), version);
  return { element, update };
}

const plots = (plotOf) => el("div", { class: "plots" }, Object.keys(t.plots).map(plotOf));

function tiles({ users, files, storage }) {
  const percentage = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2 })
    .format(storage.usage_percentage / 100);
  const part = Math.min(100, storage.usage_percentage);
  return el("dl", { class: "tiles" },
    tile(t.users, formatNumber(users.total), t.users_more({ active: formatNumber(users.active),
      recent: formatNumber(users.new_this_month) })),
    tile(t.files, formatNumber(files.total), t.files_more({ recent: formatNumber(files.uploads_this_month) })),
    tile(t.storage, formatBytes(storage.used), t.storage_more({ quota: formatBytes(storage.quota), percentage,
      deleted: formatBytes(storage.deleted) }),
      el("progress", { max: "100", value: String(part), "aria-label": t.storage })));
}

function tile(name, figure, more, bar) {
  return el("div", { class: "tile" }, el("dt", {}, name), el("dd", { class: "tile-figure" }, figure),
    el("dd", { class: "small soft" }, more), bar && el("dd", {}, bar));
}

/**
 * A plot of one of the figures of some days, oldest first. The drawing is for eyes, and the same figures stand in a
 * table that can be opened.
 */
function plot(name, days) {
  const title = t.plots[name];
  const points = days.map((day) => ({ date: day.date, value: day[name] }));
  const format = name === "bytes" ? formatBytes : formatNumber;
  const total = points.reduce((sum, { value }) => sum + value, 0);
  const place = el("div", { class: "plot-drawing", "aria-hidden": "true" });
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width) replace(place, drawing({ points, format, width }));
  }).observe(place);
  const caption = el("figcaption", {}, el("span", { class: "plot-title" }, title),
    el("span", { class: "plot-total" }, format(total)));
  return el("figure", { class: "plot" }, caption, place, figures({ title, points, format }));
}

function drawing({ points, format, width }) {
  const top = roundUp(Math.max(0, ...points.map(({ value }) => value)), format === formatBytes ? 1024 : 1000);
  const x = (index) => LEFT + ((width - LEFT) * index) / Math.max(1, points.length);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const lines = [0, top / 2, top].map((value) => [
    svg("line", { class: "plot-grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
    svg("text", { class: "plot-label", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
  const marks = points.length > MANY_DAYS ? line(points, x, y) : bars(points, x, y, format);
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
