// The list of accounts.

import { isId, nameOf } from "../accounts.js";
import { get } from "../api.js";
import { buttonLink, load, pageHead } from "../controls.js";
import { el, nameText } from "../dom.js";
import { formatBytes, formatDate, formatNumber, timeText } from "../format.js";
import { service } from "../limits.js";
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
  { label: t.name, sort: "name", main: true, cell: nameCell },
  { label: t.email, sort: "email", cell: ({ email }) => el("span", { class: "clamp" }, nameText(email)) },
  { label: t.files, align: "end", cell: ({ stats }) => formatNumber(stats.total_uploads) },
  { label: t.storage, sort: "total_storage_used", align: "end",
    cell: ({ stats }) => el("span", { class: "nowrap" }, formatBytes(stats.total_storage_used)) },
  { label: t.created, sort: "created_at", cell: (user) => time(user.created_at) },
  { label: t.last_login, sort: "last_login", cell: (user) => (user.last_login ? time(user.last_login) : admin.never) },
];

export function show(context) {
  const list = table({ caption: t.caption, columns: COLUMNS, sort: { by: "created_at", order: "desc" },
    empty: { title: t.none_title, text: t.none } });
  const form = filters({
    label: t.filters,
    fields: [
      { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true, maxlength: 255 },
      { name: "role", label: t.role, type: "select", options: ROLES },
      { name: "active", label: t.state, type: "select", options: STATES },
    ],
    also: ["page"],
  });
  const place = el("div", { class: "users-list" });
  const foot = pager({ hasSizes: true });
  const update = ({ query, signal }) => {
    if (isId(query.get("search"))) return goToAccount(query.get("search"));
    form.set(query);
    return load(place, {
      signal,
      waiting: list.waiting(12),
      work: () => get("/admin/users", parametersOf(query), signal),
      show: (answer) => (leaveEmptyPage(answer) ? [...place.childNodes]
        : [list.show(answer.items), foot.show(numbered(answer))]),
    });
  };
  update(context);
  const make = service.passwordResets ? admin.new_user.title : admin.new_user.title_without_mail;
  const actions = [buttonLink(make, "/console/users/new", { kind: "primary", drawing: "plus" })];
  return { element: el("div", {}, pageHead(t.title, { actions }), form.element, place), update };
}

/** What the API is asked by an address. */
function parametersOf(query) {
  return {
    ...asked(query, { sorts: SORTS }),
    text: query.get("search"),
    role: oneOf(query, "role", ["user", "admin"]),
    active: oneOf(query, "active", ["true", "false"]),
  };
}

function nameCell(user) {
  const name = nameOf(user);
  const under = [user.username !== name && user.username, exceptions(user)].flat().filter(Boolean);
  return [el("a", { class: "clamp", href: `/console/users/${user.id}` }, nameText(name)),
    under.length > 0 && el("span", { class: "badges soft small" }, under)];
}

/** Goes to the account with this id, and leaves no search for it behind. */
function goToAccount(id) {
  setQuery({ search: null }, { replace: true });
  go(`/console/users/${id}`);
}

const time = (text) => el("span", { class: "nowrap" }, timeText(text, formatDate));
