// One account: what it is, and what an administrator may do about it.

import { usage } from "../account.js";
import { addressText, isId, nameOf } from "../accounts.js";
import { ApiError, currentUser, del, get, post, put, service } from "../api.js";
import { button, buttonLink, load, pageHead, section, skeleton } from "../controls.js";
import { confirmDialog, formDialog } from "../dialogs.js";
import { el, focusOn, isInField, nameText, replace } from "../dom.js";
import { form } from "../forms.js";
import { formatDate, formatHour, timeText } from "../format.js";
import { notify, setTitle } from "../frame.js";
import { go } from "../router.js";
import { table } from "../tables.js";
import { account } from "../texts/account.js";
import { admin } from "../texts/admin.js";
import { deviceText } from "../user-agents.js";
import { backToUsers, badge, exceptions, profile } from "./user-profile.js";

const t = admin.user;

export function show({ params, signal }) {
  const head = pageHead(t.title);
  const under = el("div", { class: "badges under-title" });
  head.querySelector(".page-title").append(under);
  const place = el("div", {});
  const kept = {};
  const parts = (user) => {
    const isOwn = user.id === currentUser().id;
    replace(head.querySelector("h1"), nameText(nameOf(user)));
    setTitle(nameOf(user));
    replace(under, user.is_active && badge(admin.active, "is-good"), exceptions(user), isOwn && badge(t.you));
    // The form stays, with what was typed, while another part changes the account.
    if (kept.profile?.isDone()) kept.profile = null;
    kept.profile ??= profile(user, refresh);
    return [facts(user), kept.profile.element, isOwn ? ownPages() : accessTo(user, signal, refresh, kept)];
  };
  const find = async () => {
    // In the list an account has its figures.
    const [user] = isId(params.id) ? (await get("/admin/users", { ids: params.id }, signal)).items : [];
    if (!user) throw new ApiError({ status: 404, reason: "USER_NOT_FOUND" });
    return user;
  };
  const refresh = () => load(place, { signal, waiting: skeleton(12), work: find, show: parts });
  refresh();
  return el("div", {}, backToUsers(), head, place);
}

function facts(user) {
  const audit = (name, label) => el("a", { href: `/console/audit?${name}=${user.id}` }, label);
  const rows = [
    [t.id, el("code", {}, user.id)],
    [admin.created, timeText(user.created_at)],
    [t.updated, timeText(user.updated_at)],
    [admin.last_login, timeText(user.last_login) || admin.never],
    [admin.stored, usage(user.stats)],
    [admin.audit.title, el("span", { class: "row" }, audit("actor_id", t.acted), audit("subject_id", t.acted_on))],
  ];
  return el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Of their own account administrators change the profile here; for the rest there are the pages of everybody. */
const ownPages = () => section(t.own, { lead: t.own_lead }, buttonLink(t.own_pages, "/console/account"));

/** The parts about how an account is got into, and its deletion. */
function accessTo(user, signal, refresh, kept) {
  // What changes the account as a whole shows it anew; the button that was pressed is gone then.
  const changed = async (text) => {
    notify(text);
    if ((await refresh()) && !isInField()) focusOn();
  };
  kept.password ??= passwordSetter(user, refresh);
  return [kept.password, passwordLink(user), entries("sessions", user, signal), entries("tokens", user, signal),
    secondFactor(user, changed), service.provider && identity(user, changed), activity(user, changed),
    deletion(user, signal)];
}

/** A part that is closed until it is opened or a link names it, as `#sessions` does. Drawn anew, it is as it was. */
function folded(id, title, /** @type {any} */ { lead, actions, opened = () => {} }, ...children) {
  const before = /** @type {any} */ (document.getElementById(id));
  const open = before?.open ?? location.hash === `#${id}`;
  return el("details", { class: "section", id, open, on: { toggle: ({ target }) => target.open && opened() } },
    el("summary", {}, el("h2", {}, title)), lead && el("p", { class: "lead" }, lead), children,
    actions && el("div", { class: "actions" }, actions));
}

/** A button that does something after a question about `values`, and then calls `done(text)` with what was done. */
function askingButton(words, values, act, done) {
  const { label, title, text, busy } = words;
  return button(label, { kind: "danger", act: async () => {
    if (await confirmDialog(title, text(values), { label, busy, danger: true, act })) await done(words.done);
  } });
}

/** A password that an administrator chooses for somebody. `changed()` is called once it is set. */
function passwordSetter(user, changed) {
  const made = form({
    fields: [
      // Tells password managers whose password the form holds, which is not the administrator's.
      el("input", { type: "text", autocomplete: "username", value: user.email, hidden: true, readonly: true }),
      { name: "password", label: t.new_password, hint: t.password_hint, type: "password", required: true,
        autocomplete: "new-password" },
    ],
    label: t.set_password,
    busy: t.setting,
    kind: "",
    submit: async (values) => {
      await put(`/users/${user.id}`, values);
      made.field("password").set("");
      notify(t.password_set);
      changed();
    },
  });
  const lead = service.provider ? `${t.password_lead} ${t.password_ends}` : t.password_lead;
  return folded("password", t.password, { lead }, made.element);
}

/** A mail with a link to choose a password: the invitation again, or that for a forgotten one. */
function passwordLink(user) {
  if (!service.passwordResets || !user.is_active) return null;
  const words = user.last_login ? t.link : t.first_link;
  const send = async () => {
    await post(`/users/${user.id}/password-link`);
    notify(t.link_sent(user));
  };
  const actions = [button(words.send, { busy: t.sending, act: send })];
  return folded("password-link", t.link_title, { lead: words.lead(user), actions });
}

/** What lets somebody in, by the names that it has in the API. */
const COLUMNS = {
  sessions: [
    { label: t.device, main: true, cell: (row) => deviceText(row.user_agent) },
    { label: t.address, cell: (row) => addressText(row.address) },
    { label: t.begun, cell: (row) => timeText(row.created_at) },
    { label: t.last_used, cell: (row) => timeText(row.last_refreshed_at ?? row.created_at) },
  ],
  tokens: [
    { label: admin.name, main: true, cell: (row) => nameText(row.name) },
    { label: t.token_access, cell: (row) => account.tokens.scopes[row.scope] ?? row.scope },
    { label: t.token_used, cell: (row) => timeText(row.last_used_at, formatHour) || admin.never },
    { label: t.expires, cell: (row) => timeText(row.expires_at, formatDate) },
  ],
};

/** A part with a list of what lets somebody in, and one button that ends all of it. */
function entries(kind, user, signal) {
  const { title, caption, none, end } = t[kind];
  const path = `/users/${user.id}/${kind}`;
  const place = el("div", {});
  const rows = table({ caption, columns: COLUMNS[kind], empty: { title: "", text: none } });
  const refresh = () => load(place, {
    signal,
    waiting: rows.waiting(2),
    work: () => get(path, {}, signal),
    show: (answer) => {
      all.hidden = !answer[kind].length;
      return rows.show(answer[kind]);
    },
  });
  const done = async (text) => {
    notify(text);
    await refresh();
    if (all.hidden && !isInField()) element.querySelector("summary").focus();
  };
  const all = askingButton(end, { name: nameOf(user) }, () => del(path), done);
  all.hidden = true;
  const element = folded(kind, title, { actions: [all], opened: refresh }, place);
  return element;
}

/** Taking the second factor away. `changed(text)` is called once it is gone. */
function secondFactor(user, changed) {
  if (!user.second_factor) return folded("second-factor", t.factor, { lead: t.factor_is_off });
  const remove = askingButton(t.take_factor, { name: nameOf(user), isTold: service.passwordResets },
    () => del(`/users/${user.id}/second-factor`), changed);
  return folded("second-factor", t.factor, { lead: t.factor_is_on, actions: [remove] });
}

/** Ending the identity by which the person signs in. `changed(text)` is called once it is gone. */
function identity(user, changed) {
  const { name: provider } = service.provider;
  const password = user.has_password ? t.has_password : t.has_no_password;
  const lead = `${(user.has_identity ? t.has_identity : t.has_no_identity)({ provider })} ${password}`;
  const values = { name: nameOf(user), provider, isOnly: !user.has_password };
  const end = () => del(`/users/${user.id}/identity`);
  const actions = user.has_identity && [askingButton(t.end_identity, values, end, changed)];
  return folded("identity", t.identity, { lead, actions });
}

/** Letting somebody in or not. `changed(text)` is called with what was done. */
function activity(user, changed) {
  const set = (isActive) => put(`/users/${user.id}`, { is_active: isActive });
  const { label, busy, done } = t.activate;
  const activate = async () => {
    await set(true);
    await changed(done);
  };
  const toggle = user.is_active ? askingButton(t.deactivate, { name: nameOf(user) }, () => set(false), changed)
    : button(label, { busy, act: activate });
  return folded("access", t.access, { lead: user.is_active ? t.is_active : t.is_inactive, actions: [toggle] });
}

/** Deleting the account, which must be confirmed by typing what it is called. */
function deletion(user, signal) {
  const word = user.username ?? user.email;
  const name = nameOf(user);
  const ask = async () => {
    const isDone = await formDialog(t.delete_ask, {
      text: t.delete_text({ name }),
      fields: [{ name: "confirmation", label: t.delete_confirm({ word }), required: true, autocomplete: "off",
        autocapitalize: "none", spellcheck: "false" }],
      label: t.delete,
      busy: t.deleting,
      kind: "danger",
      submit: async ({ confirmation }) => {
        const isMeant = confirmation === word;
        if (!isMeant) throw new ApiError({ status: 422, fields: { confirmation: t.delete_mismatch({ word }) } });
        await del(`/users/${user.id}`);
        return true;
      },
    });
    if (!isDone) return;
    notify(t.deleted({ name }));
    if (!signal.aborted) go("/console/users", { replace: true });
  };
  const actions = [button(t.delete, { kind: "danger", act: ask })];
  return folded("delete", t.delete_title, { lead: t.delete_lead, actions });
}
