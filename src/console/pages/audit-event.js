// How an event of the audit log is shown: as a row of the list, and whole in a dialog.

import { accountLink, addressText, nameLinks, shortId } from "../accounts.js";
import { button } from "../controls.js";
import { dialog } from "../dialogs.js";
import { el, focusOn, nameText } from "../dom.js";
import { formatBytes, formatNumber, timeText } from "../format.js";
import { texts } from "../texts.js";
import { admin } from "../texts/admin.js";

const t = admin.audit;

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
/** With seconds, unlike elsewhere: they tell what came first. */
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
/** With the zone, beside the time of the API, which is in UTC. */
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** The columns of the list. */
export const COLUMNS = [
  { label: t.at, main: true, cell: timeCell },
  { label: t.action, cell: actionCell },
  { label: t.actor, cell: actorOf },
  { label: t.subject, cell: subjectCell },
  { label: t.address, cell: (event) => addressText(event.address) },
  { label: t.details, cell: detailsCell },
  { label: t.event, hideLabel: true, cell: (event) => button(t.show, { kind: "quiet", act: () => showEvent(event),
    "aria-label": `${t.show}: ${nameOfAction(event)}, ${clock.format(new Date(event.at))}` }) },
];

const nameOfAction = ({ action }) => t.actions[action] ?? action;

function timeCell({ at }) {
  const moment = new Date(at);
  const parts = [day.format(moment), clock.format(moment)].map((part) => el("span", { class: "nowrap" }, part));
  const lang = day.resolvedOptions().locale;
  return el("time", { datetime: at, title: at, lang, dir: "auto" }, parts[0], " ", parts[1]);
}

function actionCell(event) {
  return el("span", { class: "badges" }, nameOfAction(event), event.outcome === "failure" && outcomeBadge(event));
}

function outcomeBadge({ outcome }) {
  const kind = outcome === "failure" ? "is-danger" : "is-good";
  return el("span", { class: `badge ${kind}` }, t.outcomes[outcome] ?? outcome);
}

function actorOf({ actor_id: id }) {
  return id ? accountLink(id) : el("span", { class: "soft" }, t.nobody);
}

function subjectCell({ actor_id: actor, subject_type: type, subject_id: id, details: { filename } }) {
  if (!id) return "";
  if (type === "user") return id === actor ? el("span", { class: "soft" }, t.self) : accountLink(id);
  if (filename) return el("span", { class: "clamp", title: id }, nameText(filename));
  return el("span", {}, t.subjects[type] ?? type, " ", el("code", { title: id }, shortId(id)));
}

function detailsCell({ details }) {
  const text = summary(details);
  return text && el("span", { class: "small soft" }, text);
}

/** What is worth knowing of the details at a glance: what changed how, and figures, without ids. */
function summary(details) {
  const parts = members(details).filter(([name]) => !name.endsWith("_id"));
  return parts.map(([name, value]) => `${label(name)}: ${value}`).join(" · ");
}

/** The details as pairs of names and texts, without a file's name. The old and the new value of a member are joined. */
function members({ old = {}, new: now = {}, fields, filename, ...rest }) {
  const changed = Object.keys(now).filter((name) => now[name] !== old[name])
    .map((name) => [name, t.change({ from: text(old[name]), to: text(now[name]) })]);
  const others = fields?.filter((name) => !(name in now)) ?? [];
  const plain = Object.entries(rest).map(([name, value]) =>
    [name, name === "file_size" ? formatBytes(value) : text(value)]);
  return [...changed, ...(others.length ? [["fields", others.map(label).join(", ")]] : []), ...plain];
}

const label = (name) => t.labels[name] ?? name.replaceAll("_", " ");

function text(value) {
  if (value === null || value === undefined) return admin.none;
  if (typeof value === "boolean") return value ? t.yes : t.no;
  if (typeof value === "number") return formatNumber(value);
  return typeof value === "string" ? value.replaceAll("_", " ") : JSON.stringify(value);
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
