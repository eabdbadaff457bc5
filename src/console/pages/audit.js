// The audit log: a page of events, newest first, with filters in the address, and all of an event in a dialog.

import { accountId, accountLink, accountName, addressText, nameLinks, shortId } from "../accounts.js";
import { get } from "../api.js";
import { saveAttachment } from "../contents.js";
import { button, load, pageHead } from "../controls.js";
import { dialog } from "../dialogs.js";
import { el, focusOn, hiddenText, nameText } from "../dom.js";
import { formatBytes, formatDuration, formatHour, formatNumber, localTime, timeText, timeZone,
  utcTime } from "../format.js";
import { notify } from "../frame.js";
import { query as currentQuery, withQuery } from "../router.js";
import { filters, oneOf, pager, table } from "../tables.js";
import { admin } from "../texts/admin.js";

const t = admin.audit;
const SIZE = 50;

const IDS = ["actor_id", "subject_id"];
const TIMES = ["from", "to"];

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
/** With seconds, unlike elsewhere: they tell what came first. */
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
/** With the zone, beside the time of the API, which is in UTC. */
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

const COLUMNS = [
  { label: t.event, main: true, cell: (event) => el("span", { class: "sentence" }, sentenceOf(event), " ",
    event.outcome === "failure" && outcomeBadge(event)) },
  { label: t.details, cell: detailsCell },
  { label: t.address, cell: (event) => addressText(event.address) },
  { label: t.at, cell: (event) => el("button", { type: "button", class: "row-opener", "aria-haspopup": "dialog",
    on: { click: () => showEvent(event) } }, timeOf(event), hiddenText(` ${nameOfAction(event)}`)) },
];

export function show(context) {
  const list = table({ caption: t.caption, columns: COLUMNS,
    empty: () => ({ title: t.none_title, text: currentQuery().has("before") ? t.none_older : t.none }) });
  const form = filters({
    label: t.filters,
    more: t.more,
    fields: [
      { name: "actor_id", label: t.actor, isWhole: true, placeholder: admin.users.search_hint, maxlength: 255 },
      { name: "action", label: t.action, type: "select", options: [["", t.any_action],
        ...Object.entries(t.actions).map(([action, [name]]) => [action, name])] },
      { name: "period", label: t.period, type: "select", options: t.periods },
      { name: "subject_id", label: t.subject, isWhole: true, placeholder: admin.users.search_hint, maxlength: 255,
        isMore: true },
      { name: "outcome", label: t.outcome, type: "select", isMore: true,
        options: [["", t.any_outcome], ...Object.entries(t.outcomes)] },
      { name: "from", label: t.from, type: "datetime-local", isMore: true },
      { name: "to", label: t.to, type: "datetime-local", isMore: true },
    ],
    shown: (name, text) => {
      if (IDS.includes(name) && text) return accountName(text, context.leaving);
      return TIMES.includes(name) ? localTime(text) : text;
    },
    sent: (name, text) => (IDS.includes(name) ? accountId(text, name) : TIMES.includes(name) ? utcTime(text) : text),
  });
  const place = el("div", { class: "brief-list audit-list" });
  const foot = pager({ label: t.pages });
  const update = async ({ query, signal }) => {
    form.set(query);
    await load(place, {
      signal,
      waiting: list.waiting(12),
      work: () => get("/admin/audit", { ...asked(query), before: query.get("before"), limit: SIZE }, signal),
      show: ({ events, next: cursor }) => {
        const shown = [list.show(events), foot.show(steps(query, events, cursor))];
        nameLinks(list.element, signal);
        return shown;
      },
    });
  };
  update(context);
  const actions = [button(t.export, { busy: t.exporting, drawing: "exports", act: () => save(form) })];
  const head = pageHead(t.title, { lead: t.lead({ zone: timeZone }), actions });
  return { element: el("div", {}, head, form.element, place), update };
}

/** The filters of an address, for the list and for the export. */
function asked(query) {
  const given = Object.fromEntries([...IDS, "action", "outcome"].map((name) => [name, query.get(name)]));
  for (const name of TIMES) given[name] = utcTime(query.get(name) ?? "");
  const minutes = Number(oneOf(query, "period", t.periods.map(([period]) => period)));
  if (minutes && !given.from) given.from = new Date(Date.now() - minutes * 60_000).toISOString();
  return given;
}

/** Exports what the filters say, of which one may be just being looked up. */
async function save(form) {
  if (!(await form.apply())) return;
  const saved = await saveAttachment("/admin/audit/export", asked(currentQuery()));
  notify(admin.saved({ ...saved, size: formatBytes(saved.size) }));
}

/** The ways to older events, and back to the newest ones. `next` is the API's cursor, `null` at the end. */
function steps(query, { length: count }, next) {
  const newest = query.has("before") && el("a", { class: "button", href: withQuery({ before: null }) }, t.newest);
  const older = next && el("a", { class: "button", href: withQuery({ before: next }) }, t.older);
  return { said: count ? t.shown({ count: formatNumber(count) }) : t.none_title, steps: [newest, older], total: count };
}

const nameOfAction = ({ action }) => t.actions[action]?.[0] ?? action;

/** What happened, as a sentence with links to the accounts in it. */
function sentenceOf(event) {
  const [did, ...rest] = wordsOf(event).split("{}");
  return [actorOf(event), ` ${did}`, rest.map((words) => [subjectOf(event), words])];
}

function wordsOf({ action, outcome, actor_id: actor, details: { old, new: now, upload_to: target } }) {
  if (target) return t.upload_links[action];
  if (old?.is_active !== now?.is_active) return now.is_active ? t.activated : t.deactivated;
  if (action === "password.reset_request" && actor) return t.link_sent;
  const [, did = action, tried = did] = t.actions[action] ?? [];
  return outcome === "failure" ? tried : did;
}

function timeOf({ at }) {
  const moment = new Date(at);
  const parts = [day.format(moment), clock.format(moment)].map((part) => el("span", { class: "nowrap" }, part));
  const lang = day.resolvedOptions().locale;
  return el("time", { datetime: at, title: at, lang, dir: "auto" }, parts[0], " ", parts[1]);
}

function outcomeBadge({ outcome }) {
  const kind = outcome === "failure" ? "is-danger" : "is-good";
  return el("span", { class: `badge ${kind}` }, t.outcomes[outcome] ?? outcome);
}

function actorOf({ actor_id: id }) {
  return id ? accountLink(id) : el("span", { class: "soft" }, t.nobody);
}

/** In sums and in what happened to one's own sessions, tokens and account the subject is the actor. */
function subjectOf({ action, actor_id: actor, subject_type: type, subject_id: id, details }) {
  const { filename, count, files, folder, upload_to: target } = details;
  if (!id) return t.unknown;
  if (filename) return el("span", { title: id }, nameText(filename));
  const place = folder ?? target;
  if (type === "link") return place ? nameText(place) : t.files({ count: formatNumber(files ?? count) });
  if (type === "file") return el("span", {}, t.subjects.file, " ", el("code", { title: id }, shortId(id)));
  if (type === "user" && id !== actor) return accountLink(id);
  return count && action.startsWith("file.") ? t.files({ count: formatNumber(count) }) : t.self;
}

/** What is worth knowing of the details at a glance: what changed how, and figures, without ids. */
function detailsCell({ details }) {
  const parts = members(details).filter(([name]) => !name.endsWith("_id"));
  const text = parts.map(([name, value]) => `${label(name)}: ${value}`).join(" · ");
  return text && el("span", { class: "small soft" }, text);
}

/** The details as pairs of names and texts, without a file's name. The old and the new value of a member are joined. */
function members({ old = {}, new: now = {}, fields, filename, ...rest }) {
  const changed = Object.keys(now).filter((name) => now[name] !== old[name])
    .map((name) => [name, t.change({ from: text(old[name]), to: text(now[name]) })]);
  const others = fields?.filter((name) => !(name in now)) ?? [];
  const plain = Object.entries(rest).map(([name, value]) => [name, ((value !== null && FORMATS[name]) || text)(value)]);
  return [...changed, ...(others.length ? [["fields", others.map(label).join(", ")]] : []), ...plain];
}

/** How figures among the details are shown that have a unit. */
const FORMATS = {
  file_size: formatBytes, hour: formatHour, expires_in_minutes: formatDuration,
  expires_in_days: (days) => formatDuration(days * 1440),
};

const label = (name) => t.labels[name] ?? name.replaceAll("_", " ");

function text(value) {
  if (value === null || value === undefined) return admin.none;
  if (typeof value === "boolean") return value ? t.yes : t.no;
  if (typeof value === "number") return formatNumber(value);
  return typeof value === "string" ? t.values[value] ?? value.replaceAll("_", " ") : JSON.stringify(value);
}

/** Shows all of an event, with links to the events that share its actor or its subject. */
function showEvent(event) {
  const only = (name, id, words) => el("a", { href: `/console/audit?${name}=${id}` }, words);
  const { actor_id: actor, subject_id: subject, subject_type: type } = event;
  const rows = [
    [t.at, [timeText(event.at, (at) => zoned.format(new Date(at))), el("code", {}, event.at)]],
    [t.outcome, outcomeBadge(event)],
    [t.actor, [actorOf(event), actor && [el("code", {}, actor), only("actor_id", actor, t.only_actor)]]],
    [t.subject, subject && [type === "user" ? accountLink(subject) : t.subjects[type] ?? type,
      event.details.filename && nameText(event.details.filename), el("code", {}, subject),
      only("subject_id", subject, t.only_subject)]],
    [t.address, event.address],
    ...members(event.details).map(([name, value]) => [label(name), value]),
    [t.request_id, event.request_id && el("code", {}, event.request_id)],
    [t.event_id, el("code", {}, event.id)],
  ];
  const lines = (value) => [value].flat(2).filter(Boolean).map((part) => el("div", {}, part));
  const facts = el("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) =>
    [el("dt", {}, name), el("dd", { class: "lines" }, lines(value))]));
  const title = [nameOfAction(event), " ", el("code", { class: "soft" }, event.action)];
  const box = dialog(title, facts, { wide: true });
  nameLinks(facts);
  // A link leads to another list or page, which begins at its heading.
  facts.addEventListener("click", async ({ target }) => {
    if (!target.closest("a")) return;
    box.close();
    await box.result;
    focusOn();
  });
}
