// The list of accounts.

import { isId, nameOf } from "../accounts.js";
import { get, service } from "../api.js";
import { saveAttachment } from "../contents.js";
import { button, buttonLink, load, pageHead } from "../controls.js";
import { formDialog } from "../dialogs.js";
import { el, nameText } from "../dom.js";
import { formatBytes, formatDate, formatNumber, timeText } from "../format.js";
import { notify } from "../frame.js";
import { go, setQuery } from "../router.js";
import { asked, filters, leaveEmptyPage, numbered, oneOf, pager, table } from "../tables.js";
import { admin } from "../texts/admin.js";
import { exceptions } from "./user-profile.js";

const t = admin.users;

const ROLES = [["", t.any_role], ...Object.entries(admin.roles)];
const STATES = [["", t.any_state], ["true", admin.active], ["false", admin.inactive]];
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

export function show(context) {
  const list = table({ caption: t.caption, columns: COLUMNS, sort: { by: "created_at", order: "desc" },
    empty: { title: t.none_title, text: t.none } });
  const form = filters({
    label: t.filters,
    fields: [
      { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true, maxlength: 255 },
      { name: "role", label: admin.role, type: "select", options: ROLES },
      { name: "active", label: t.state, type: "select", options: STATES },
    ],
  });
  const place = el("div", { class: "users-list" });
  const foot = pager({ hasSizes: true });
  const update = ({ query, signal }) => {
    const search = query.get("search");
    if (isId(search)) {
      setQuery({ search: null }, { replace: true }); // nothing of the search is left behind
      return go(`/console/users/${search}`);
    }
    form.set(query);
    return load(place, {
      signal,
      waiting: list.waiting(12),
      work: () => get("/admin/users", { ...asked(query, { sorts: SORTS }), text: search,
        role: oneOf(query, "role", ["user", "admin"]), active: oneOf(query, "active", ["true", "false"]) }, signal),
      show: (answer) => (leaveEmptyPage(answer) ? [...place.childNodes]
        : [list.show(answer.items), foot.show(numbered(answer))]),
    });
  };
  update(context);
  const make = service.passwordResets ? admin.new_user.title : admin.new_user.title_without_mail;
  const actions = [button(t.export, { drawing: "exports", on: { click: exportAccounts } }),
    buttonLink(make, "/console/users/new", { kind: "primary", drawing: "plus" })];
  return { element: el("div", {}, pageHead(t.title, { actions }), form.element, place), update };
}

function nameCell(user) {
  const name = nameOf(user);
  const under = [user.username !== name && user.username, exceptions(user)].flat().filter(Boolean);
  return [el("a", { class: "clamp", href: `/console/users/${user.id}` }, nameText(name)),
    under.length > 0 && el("span", { class: "badges soft small" }, under)];
}

/** Saves the accounts whose addresses match, or all of them, for other programs. */
async function exportAccounts() {
  const saved = await formDialog(t.export_title, {
    text: t.export_text,
    fields: [{ name: "email", label: t.export_email, hint: t.export_email_hint, maxlength: 255, autocomplete: "off" }],
    label: t.download,
    busy: t.preparing,
    submit: (filter) => saveAttachment("/users/export", filter),
  });
  if (saved) notify(admin.saved({ ...saved, size: formatBytes(saved.size) }));
}

const time = (text) => el("span", { class: "nowrap" }, timeText(text, formatDate));
