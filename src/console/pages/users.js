// The list of accounts.

import { isId, nameOf } from "../accounts.js";
import { currentUser, get, post, put, service } from "../api.js";
import { saveAttachment } from "../contents.js";
import { button, buttonLink, load, pageHead } from "../controls.js";
import { formDialog } from "../dialogs.js";
import { el, nameText } from "../dom.js";
import { ACTIONS } from "../file-actions.js";
import { formatBytes, formatDate, formatNumber, timeText } from "../format.js";
import { notify } from "../frame.js";
import { go, query as currentQuery, setQuery } from "../router.js";
import { selection } from "../selection.js";
import { asked, filters, leaveEmptyPage, numbered, oneOf, pager, table } from "../tables.js";
import { admin } from "../texts/admin.js";
import { files as fileTexts } from "../texts/files.js";
import { exceptions, quotaField, toBytes } from "./user-profile.js";

const t = admin.users;

const FIELDS = [
  { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true, maxlength: 255 },
  { name: "role", label: admin.role, type: "select", options: [["", t.any_role], ...Object.entries(admin.roles)] },
  { name: "active", label: t.state, type: "select",
    options: [["", t.any_state], ["true", admin.active], ["false", admin.inactive]] },
];
/** The smallest page, of an answer of which only the number of all accounts is read. */
const SIZE = 25;
/** What the service can sort by, first what it does unless told. */
const SORTS = ["created_at", "name", "email", "total_storage_used", "last_login"];

const COLUMNS = [
  { label: admin.name, sort: "name", main: true, cell: nameCell },
  { label: admin.email, sort: "email", cell: ({ email }) => el("span", { class: "clamp" }, nameText(email)) },
  { label: t.files, align: "end", cell: ({ stats }) => formatNumber(stats.total_uploads) },
  { label: admin.stored, sort: "total_storage_used", align: "end",
    cell: ({ stats }) => el("span", { class: "nowrap" }, formatBytes(stats.total_storage_used)) },
  { label: admin.created, sort: "created_at", cell: (user) => time(user.created_at) },
  { label: admin.last_login, sort: "last_login",
    cell: ({ last_login: last }) => (last ? time(last) : admin.never) },
];

/** What is done with several accounts, in the way of what is done with files. */
const setAll = (fields) => ({ id }) => put(`/users/${id}`, fields);
Object.assign(fileTexts.actions, t.actions);
Object.assign(ACTIONS, {
  invite: { fits: (user) => user.is_active && !user.last_login, send: ({ id }) => post(`/users/${id}/password-link`) },
  quota: { prepare: askQuota, send: ({ id, quota }) => put(`/users/${id}`, { storage_quota: quota }) },
  activate: { fits: (user) => !user.is_active, send: setAll({ is_active: true }) },
  deactivate: { kind: "danger", fits: (user) => user.is_active && user.id !== currentUser().id,
    send: setAll({ is_active: false }) },
});

/** The accounts with the limit of each, or `undefined` where the person gives up. */
async function askQuota(users) {
  const wanted = await formDialog(t.actions.quota.label, { fields: [quotaField()], label: admin.user.save,
    submit: (values) => ({ quota: toBytes(values.storage_quota) }) });
  return wanted && users.map((user) => ({ ...user, ...wanted }));
}

/** What the API is asked for, by the filters in the address. */
const asFiltered = (query) => ({ text: query.get("search"), role: oneOf(query, "role", ["user", "admin"]),
  active: oneOf(query, "active", ["true", "false"]) });

async function ask({ query, signal }, other = {}) {
  const wanted = { ...asked(query, { sorts: SORTS }), ...asFiltered(query), ...other };
  const answer = await get("/admin/users", wanted, signal);
  return { ...answer, items: answer.items.map((user) => ({ ...user, filename: nameOf(user) })) };
}

export function show(context) {
  let latest = { context, total: 0 };
  const form = filters({ label: t.filters, fields: FIELDS });
  const tools = el("div", { class: "list-tools" }, form.element);
  const actions = [service.passwordResets && "invite", "quota", "activate", "deactivate"].filter(Boolean);
  const selected = selection({ tools, actions, ask: (other) => ask(latest.context, other) });
  const list = table({ caption: t.caption, columns: [selected.column, ...COLUMNS], keeps: true,
    sort: { by: "created_at", order: "desc" }, empty: { title: t.none_title, text: t.none } });
  const place = el("div", { class: "users-list" });
  const foot = pager({ hasSizes: true });
  const fill = (given, isSilent = false) => load(place, {
    signal: given.signal,
    isSilent,
    waiting: list.waiting(12),
    work: () => ask(given),
    show: (answer) => {
      if (leaveEmptyPage(answer)) return [...place.childNodes];
      latest = { context: given, total: answer.total };
      list.show(answer.items);
      selected.show(answer);
      return [list.element, foot.show(numbered(answer))];
    },
  });
  const update = (next) => {
    const { query } = next;
    const search = query.get("search");
    if (isId(search)) {
      setQuery({ search: null }, { replace: true }); // nothing of the search is left behind
      return go(`/console/users/${search}`);
    }
    latest.context = next;
    selected.clear();
    form.set(query);
    return fill(next);
  };
  addEventListener("files", () => fill(latest.context, true).catch(() => {}), { signal: context.leaving });
  update(context);
  const make = service.passwordResets ? admin.new_user.title : admin.new_user.title_without_mail;
  const head = pageHead(t.title, { actions: [
    button(t.export, { drawing: "exports", act: async () => { exportAccounts(await choices(latest.total)); } }),
    buttonLink(make, "/console/users/new", { kind: "primary", drawing: "plus" })] });
  return { element: el("div", {}, head, tools, selected.bar, place), update };
}

function nameCell(user) {
  const name = nameOf(user);
  const under = [user.username !== name && user.username, exceptions(user)].flat().filter(Boolean);
  return el("div", { class: "user-name" },
    el("span", { class: "mark initials", "data-initials": initials(name), "aria-hidden": "true" }),
    el("a", { class: "clamp", href: `/console/users/${user.id}` }, nameText(name)),
    under.length > 0 && el("span", { class: "badges soft small" }, under));
}

/** The first letters of the first and the last word of a name, or of what stands before the @ of an address. */
function initials(name) {
  const words = name.split("@")[0].match(/[\p{L}\p{N}]+/gu) ?? [];
  return [words[0], words.length > 1 && words.at(-1)].map((word) => (word ? [...word][0].toUpperCase() : "")).join("");
}

/** What can be exported: the accounts that the filters leave, which are `count`, or all of them. */
async function choices(count) {
  const isFiltered = Object.values(asFiltered(currentQuery())).some(Boolean);
  const { total } = isFiltered ? await get("/admin/users", { size: SIZE }) : { total: count };
  return [isFiltered && ["shown", t.export_shown({ n: count, count: formatNumber(count) })],
    ["all", t.export_all({ n: total, count: formatNumber(total) })]].filter(Boolean);
}

/** Saves accounts for other programs. */
async function exportAccounts(options) {
  const filter = asFiltered(currentQuery());
  const saved = await formDialog(t.export_title, {
    text: t.export_text,
    fields: [{ name: "which", label: t.caption, type: "select", options, required: true }],
    label: t.download,
    busy: t.preparing,
    submit: ({ which }) => saveAttachment("/users/export", which === "shown" ? filter : {}),
  });
  if (saved) notify(admin.saved({ ...saved, size: formatBytes(saved.size) }));
}

const time = (text) => el("span", { class: "nowrap" }, timeText(text, formatDate));
