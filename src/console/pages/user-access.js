// How an account is got into, for its page: sessions, tokens, second factor, password, being active, and its deletion.

import { addressText, nameOf } from "../accounts.js";
import { del, get, post, put, service } from "../api.js";
import { button, load } from "../controls.js";
import { STAY, confirmDialog, formDialog } from "../dialogs.js";
import { el, isInField, nameText } from "../dom.js";
import { form } from "../forms.js";
import { formatDate, timeText } from "../format.js";
import { notify } from "../frame.js";
import { go } from "../router.js";
import { table } from "../tables.js";
import { account } from "../texts/account.js";
import { admin } from "../texts/admin.js";
import { deviceText } from "../user-agents.js";

const t = admin.user;

/** A password that an administrator chooses for somebody. `changed()` is called once it is set. */
export function passwordSetter(user, changed) {
  const made = form({
    fields: [usernameFor(user), { name: "password", label: t.new_password, hint: t.password_hint, type: "password",
      required: true, autocomplete: "new-password" }],
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
  return folded("password", t.password, { lead: t.password_lead }, made.element);
}

/** A part that is closed until it is opened or a link names it, as `#sessions` does. Drawn anew, it is as it was. */
function folded(id, title, /** @type {any} */ { lead, actions, opened = () => {} }, ...children) {
  const before = /** @type {any} */ (document.getElementById(id));
  const open = before?.open ?? location.hash === `#${id}`;
  return el("details", { class: "section", id, open, on: { toggle: ({ target }) => target.open && opened() } },
    el("summary", {}, el("h2", {}, title)), lead && el("p", { class: "lead" }, lead), children,
    actions && el("div", { class: "actions" }, actions));
}

/** A mail with a link to choose a password: the invitation again, or that for a forgotten one. */
export function passwordLink(user) {
  if (!service.passwordResets || !user.is_active) return null;
  const words = user.last_login ? t.link : t.first_link;
  const send = async () => {
    await post(`/users/${user.id}/password-link`);
    notify(t.link_sent(user));
  };
  const actions = [button(words.send, { busy: t.sending, act: send })];
  return folded("password-link", t.link_title, { lead: words.lead(user), actions });
}

/** Tells password managers whose password the form holds, which is not the administrator's. */
function usernameFor(user) {
  return el("input", { type: "text", autocomplete: "username", value: user.email, hidden: true, readonly: true });
}

export function sessions(user, signal) {
  return endable({
    user,
    signal,
    path: "sessions",
    title: t.sessions,
    caption: t.sessions_caption,
    columns: [
      { label: t.device, main: true, cell: (row) => deviceText(row.user_agent) },
      { label: t.address, cell: (row) => addressText(row.address) },
      { label: t.begun, cell: (row) => timeText(row.created_at) },
      { label: t.last_used, cell: (row) => timeText(row.last_refreshed_at ?? row.created_at) },
    ],
    empty: t.no_sessions,
    end: { label: t.end_sessions, title: t.end_sessions_title, text: t.end_sessions_text, done: t.sessions_ended },
  });
}

export function tokens(user, signal) {
  return endable({
    user,
    signal,
    path: "tokens",
    title: t.tokens,
    caption: t.tokens_caption,
    columns: [
      { label: t.token_name, main: true, cell: (row) => nameText(row.name) },
      { label: t.token_access, cell: (row) => account.tokens.scopes[row.scope] ?? row.scope },
      { label: t.token_used, cell: (row) => timeText(row.last_used_at) || admin.never },
      { label: t.expires, cell: (row) => timeText(row.expires_at, formatDate) },
    ],
    empty: t.no_tokens,
    end: { label: t.end_tokens, title: t.end_tokens_title, text: t.end_tokens_text, done: t.tokens_ended },
  });
}

/** A part with a list of what lets somebody in, and one button that ends all of it. */
function endable({ user, signal, path, title, caption, columns, empty, end }) {
  const place = el("div", {});
  const rows = table({ caption, columns, empty: { title: "", text: empty } });
  const refresh = () => load(place, {
    signal,
    waiting: rows.waiting(2),
    work: () => get(`/users/${user.id}/${path}`, {}, signal),
    show: (answer) => {
      all.hidden = !answer[path].length;
      return rows.show(answer[path]);
    },
  });
  const ask = async () => {
    const isDone = await confirmDialog(end.title, end.text({ name: nameOf(user) }), {
      label: end.label,
      busy: t.ending,
      danger: true,
      act: () => del(`/users/${user.id}/${path}`),
    });
    if (!isDone) return;
    notify(end.done);
    await refresh();
    if (all.hidden && !isInField()) element.querySelector("summary").focus();
  };
  const all = button(end.label, { kind: "danger", hidden: true, act: ask });
  const element = folded(path, title, { actions: [all], opened: refresh }, place);
  return element;
}

/** Taking the second factor away. `changed()` is called once it is gone. */
export function secondFactor(user, changed) {
  if (!user.second_factor) return folded("second-factor", t.factor, { lead: t.factor_is_off });
  const text = t.take_factor_text({ name: nameOf(user), isTold: service.passwordResets });
  const ask = async () => {
    const isDone = await confirmDialog(t.take_factor_title, text, {
      label: t.take_factor,
      busy: t.taking,
      danger: true,
      act: () => del(`/users/${user.id}/second-factor`),
    });
    if (isDone) changed(t.factor_taken);
  };
  const actions = [button(t.take_factor, { kind: "danger", act: ask })];
  return folded("second-factor", t.factor, { lead: t.factor_is_on, actions });
}

/** Letting somebody in or not. `changed(text)` is called with what was done. */
export function activity(user, changed) {
  const set = (isActive) => put(`/users/${user.id}`, { is_active: isActive });
  const activate = () => button(t.activate, { busy: t.activating, act: async () => {
    await set(true);
    changed(t.activated);
  } });
  const ask = async () => {
    const isDone = await confirmDialog(t.deactivate_title, t.deactivate_text({ name: nameOf(user) }), {
      label: t.deactivate,
      busy: t.deactivating,
      danger: true,
      act: () => set(false),
    });
    if (isDone) changed(t.deactivated);
  };
  const actions = [user.is_active ? button(t.deactivate, { kind: "danger", act: ask }) : activate()];
  return folded("access", t.access, { lead: user.is_active ? t.is_active : t.is_inactive, actions });
}

/** Deleting the account, which must be confirmed by typing what it is called. */
export function deletion(user, signal) {
  const word = user.username ?? user.email;
  const confirmed = () => formDialog(t.delete_ask, (made) => ({
    text: t.delete_text({ name: nameOf(user) }),
    fields: [{ name: "confirmation", label: t.delete_confirm({ word }), required: true, autocomplete: "off",
      autocapitalize: "none", spellcheck: "false" }],
    label: t.delete,
    busy: t.deleting,
    kind: "danger",
    submit: async ({ confirmation }) => {
      if (confirmation !== word) {
        made().field("confirmation").error(t.delete_mismatch({ word }));
        made().field("confirmation").input.focus();
        return STAY;
      }
      await del(`/users/${user.id}`);
      return true;
    },
  }));
  const ask = async () => {
    if (!(await confirmed())) return;
    notify(t.deleted({ name: nameOf(user) }));
    if (!signal.aborted) go("/console/users", { replace: true });
  };
  const actions = [button(t.delete, { kind: "danger", act: ask })];
  return folded("delete", t.delete_title, { lead: t.delete_lead, actions });
}
