// The figures of the whole service: the totals of this moment, and what came day by day.

import { get } from "../api.js";
import { load, pageHead, section, skeleton } from "../controls.js";
import { el, replace } from "../dom.js";
import { formatBytes, formatNumber } from "../format.js";
import { plot } from "../plots.js";
import { withQuery } from "../router.js";
import { admin } from "../texts/admin.js";

const t = admin.stats;

const RANGES = [7, 30, 90, 365];
const DEFAULT_RANGE = 30;
/** From this number of days on, lines read better than bars. */
const MANY_DAYS = 120;

export function show(context) {
  const totals = el("div", {});
  const links = RANGES.map((range) => [range, el("a", {}, t.days({ days: range }))]);
  const ranges = el("nav", { class: "segments", "aria-label": t.range }, links.map(([, link]) => link));
  const daily = el("div", {});
  const version = el("p", { class: "section small soft" });
  const show = (stats) => {
    replace(version, t.version(stats));
    return tiles(stats);
  };
  load(totals, { signal: context.leaving, waiting: tilesWaiting(), show,
    work: () => get("/admin/stats", {}, context.leaving) });
  const update = ({ query, signal }) => {
    const days = RANGES.find((range) => String(range) === query.get("days")) ?? DEFAULT_RANGE;
    for (const [range, link] of links) markLink(link, range, range === days);
    return load(daily, {
      signal,
      waiting: plotsWaiting(),
      work: () => get("/admin/stats/daily", { days }, signal),
      show: (answer) => plots(answer.days),
    });
  };
  update(context);
  return {
    element: el("div", {}, pageHead(t.title, { lead: t.lead }), totals,
      section(t.daily, { lead: t.daily_lead, actions: [ranges] }, daily), version),
    update,
  };
}

function markLink(link, range, isChosen) {
  link.setAttribute("href", withQuery({ days: range === DEFAULT_RANGE ? null : range }));
  if (isChosen) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}

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

function plots(days) {
  const kind = days.length > MANY_DAYS ? "line" : "bars";
  return el("div", { class: "plots" }, Object.entries(t.plots).map(([name, title]) => plot({
    title,
    kind,
    points: days.map((day) => ({ date: day.date, value: day[name] })),
    format: name === "bytes" ? formatBytes : formatNumber,
  })));
}

const tilesWaiting = () => el("div", { class: "tiles" },
  [1, 2, 3].map(() => el("div", { class: "tile" }, skeleton(2))));
const plotsWaiting = () => el("div", { class: "plots" },
  Object.keys(t.plots).map(() => el("div", { class: "plot is-waiting" }, skeleton(3))));
