// The audit log: a page of events, newest first, with filters in the address.

import { accountId, accountName, nameLinks } from "../accounts.js";
import { get } from "../api.js";
import { saveAttachment } from "../contents.js";
import { button, load, pageHead } from "../controls.js";
import { el } from "../dom.js";
import { formatBytes, formatNumber, localTime, timeZone, utcTime } from "../format.js";
import { notify } from "../frame.js";
import { query as currentQuery, withQuery } from "../router.js";
import { filters, pager, table } from "../tables.js";
import { admin } from "../texts/admin.js";
import { COLUMNS } from "./audit-event.js";

const t = admin.audit;
const SIZE = 50;

const IDS = ["actor_id", "subject_id"];
const TIMES = ["from", "to"];

export function show(context) {
  const list = table({ caption: t.caption, columns: COLUMNS, empty: nothing });
  const form = filters({
    label: t.filters,
    fields: [
      { name: "actor_id", label: t.actor, isWhole: true, placeholder: t.id_hint, maxlength: 255 },
      { name: "subject_id", label: t.subject, isWhole: true, placeholder: t.id_hint, maxlength: 255 },
      { name: "action", label: t.action, type: "select", options: [["", t.any_action], ...Object.entries(t.actions)] },
      { name: "outcome", label: t.outcome, type: "select",
        options: [["", t.any_outcome], ...Object.entries(t.outcomes)] },
      { name: "from", label: t.from, type: "datetime-local" },
      { name: "to", label: t.to, type: "datetime-local" },
    ],
    also: ["before"],
    shown: (name, text) => {
      if (IDS.includes(name) && text) return accountName(text, context.leaving);
      return TIMES.includes(name) ? localTime(text) : text;
    },
    sent: (name, text) => (IDS.includes(name) ? accountId(text, name) : TIMES.includes(name) ? utcTime(text) : text),
  });
  const open = matchMedia("(min-width: 601px)").matches;
  const folded = el("details", { class: "filters", open }, el("summary", {}, t.filters), form.element);
  const place = el("div", { class: "brief-list" });
  const foot = pager({ label: t.pages });
  const update = async ({ query, signal }) => {
    form.set(query);
    folded.open ||= Object.values(asked(query)).some(Boolean);
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
  return { element: el("div", {}, head, folded, place), update };
}

/** The filters of an address, for the list and for the export. */
function asked(query) {
  const given = Object.fromEntries([...IDS, "action", "outcome"].map((name) => [name, query.get(name)]));
  for (const name of TIMES) given[name] = utcTime(query.get(name) ?? "");
  return given;
}

/** Exports what the filters say, of which one may be just being looked up. */
async function save(form) {
  if (!(await form.apply())) return;
  const saved = await saveAttachment("/admin/audit/export", asked(currentQuery()));
  notify(admin.exports.saved({ ...saved, size: formatBytes(saved.size) }));
}

function nothing() {
  return { title: t.none_title, text: currentQuery().has("before") ? t.none_older : t.none };
}

/** The ways to older events, and back to the newest ones. `next` is the API's cursor, `null` at the end. */
function steps(query, { length: count }, next) {
  const newest = query.has("before") && el("a", { class: "button", href: withQuery({ before: null }) }, t.newest);
  const older = next && el("a", { class: "button", href: withQuery({ before: next }) }, t.older);
  return { said: count ? t.shown({ count: formatNumber(count) }) : t.none_title, steps: [newest, older], total: count };
}
