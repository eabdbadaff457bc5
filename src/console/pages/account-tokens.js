// Personal access tokens: making one, which is shown once, and ending them.

import { accountPage, endAt, sayDone, showOnce } from "../account.js";
import { get, post } from "../api.js";
import { button, copyButton, load } from "../controls.js";
import { confirmDialog, formDialog } from "../dialogs.js";
import { el, focusOn, nameText } from "../dom.js";
import { formatDate, formatHour, formatUntil, timeText } from "../format.js";
import { table } from "../tables.js";
import { account } from "../texts/account.js";

const t = account.tokens;
/** Milliseconds before its end in which a token is marked. */
const SOON = 7 * 86_400_000;

export function show({ leaving }) {
  const place = el("div", { class: "brief-list" });
  const list = tokenTable((token) => remove(token, refresh));
  const refresh = () => load(place, {
    signal: leaving,
    waiting: list.waiting(3),
    work: () => get("/auth/tokens", {}, leaving),
    show: ({ tokens }) => list.show(tokens),
  });
  refresh();
  const actions = [button(t.create, { kind: "primary", drawing: "plus", act: () => create(refresh) })];
  return accountPage(t.title, { lead: t.lead, actions }, place);
}

function tokenTable(removeOne) {
  return table({
    caption: t.caption,
    columns: [
      { label: t.name, main: true, cell: ({ name }) => nameText(name) },
      { label: t.access, cell: ({ scope }) => oneLine(t.scopes[scope] ?? scope) },
      { label: account.profile.since, cell: ({ created_at: at }) => oneLine(timeText(at, formatDate)) },
      { label: t.used, cell: ({ last_used_at: at }) => lastUse(at) },
      { label: account.expires, cell: ({ expires_at: at }) => ending(at) },
      { label: account.actions, hideLabel: true, cell: (token) => button(t.delete, {
        kind: "quiet danger", "aria-label": t.delete_label(token), act: () => removeOne(token) }) },
    ],
    empty: { title: t.none, text: t.none_text },
  });
}

const oneLine = (text) => el("span", { class: "nowrap" }, text);

const lastUse = (at) => (at ? oneLine(timeText(at, formatHour)) : el("span", { class: "soft" }, t.never));

function ending(at) {
  const isSoon = new Date(at).getTime() - Date.now() < SOON;
  return el("span", { class: isSoon ? "badge is-warn" : "nowrap" }, timeText(at, isSoon ? formatUntil : formatDate));
}

async function create(refresh) {
  const answer = await formDialog(t.create_title, {
    fields: [
      { name: "name", label: t.name, hint: t.name_hint, required: true, maxlength: 100, autocomplete: "off" },
      { name: "expires_in_days", label: t.days, hint: t.days_hint, type: "number", min: 1, max: 365, step: 1, value: 90,
        required: true, inputmode: "numeric" },
      { name: "scope", label: t.access, type: "select", options: Object.entries(t.scopes), required: true },
    ],
    label: t.create_submit,
    busy: account.creating,
    // Also after an error: the token may have been made, and only the answer lost.
    submit: (values) => post("/auth/tokens", values).finally(() => { refresh(); }),
  });
  if (!answer) return;
  const isSeen = await showOnce(t.made_title, [
    el("p", {}, t.made),
    el("p", { class: "code secret", translate: "no" }, answer.token),
    el("p", {}, copyButton(answer.token, t.copy, { kind: "primary" })),
    el("p", { class: "small soft" }, t.made_use),
    el("p", { class: "code", translate: "no" }, `Authorization: Bearer ${answer.token.slice(0, 10)}…`),
  ], t.kept);
  if (isSeen) focusOn();
}

async function remove(token, refresh) {
  let said;
  const isDone = await confirmDialog(t.delete_title, [el("strong", {}, nameText(token.name)), t.delete_text], {
    label: t.delete,
    busy: account.deleting,
    danger: true,
    act: async () => { said = await endAt(`/auth/tokens/${token.id}`, t.deleted); },
  });
  if (isDone) sayDone(said, await refresh());
}
