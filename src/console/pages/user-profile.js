// What the pages of accounts share: the fields that administrators change, their form, and what is unusual.

import { provable } from "../account.js";
import { nameOf } from "../accounts.js";
import { currentUser, forget, put, service, setCurrentUser } from "../api.js";
import { section } from "../controls.js";
import { confirmDialog } from "../dialogs.js";
import { el, icon } from "../dom.js";
import { changes, form } from "../forms.js";
import { formatNumber } from "../format.js";
import { notify } from "../frame.js";
import { go } from "../router.js";
import { admin } from "../texts/admin.js";

const t = admin.user;
/** A megabyte as `formatBytes` shows it. */
const MEGABYTE = 1_048_576;

/** @returns {any[]} Descriptions of the fields of an account, for `form`. */
export function profileFields(user) {
  return [
    { name: "email", label: admin.email, type: "email", value: user.email, required: true, maxlength: 255,
      autocomplete: "off", reasons: ["EMAIL_TAKEN"] },
    { name: "name", label: admin.name, value: user.name, maxlength: 255, autocomplete: "off" },
    { name: "username", label: t.username, value: user.username, hint: t.username_hint, minlength: 3, maxlength: 50,
      required: Boolean(user.username), autocomplete: "off", autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
    { name: "role", label: admin.role, type: "select", value: user.role, required: true, hint: t.role_hint,
      options: Object.entries(admin.roles), reasons: ["LAST_ADMIN"] },
    { name: "permissions", label: t.permissions, type: "textarea", value: user.permissions.join("\n"), rows: 3,
      hint: t.permissions_hint },
    quotaField(user.storage_quota),
    { name: "file_quota", label: t.file_quota, type: "number", min: 0, step: 1, value: user.file_quota,
      placeholder: formatNumber(service.userFiles), hint: t.quota_hint },
  ];
}

/** What the values of these fields mean to the API. */
export function accountOf(/** @type {any} */ { permissions, storage_quota: megabytes, ...values }) {
  const words = permissions.split("\n").map((line) => line.trim()).filter(Boolean);
  return { ...values, permissions: words, storage_quota: toBytes(megabytes) };
}

/** The field for how many bytes an account may store, `null` for the usual number; and what it means to the API. */
export const quotaField = (bytes = null) => ({ name: "storage_quota", label: t.storage_quota, type: "number", min: 0,
  step: "any", hint: t.quota_hint, placeholder: formatNumber(service.userBytes / MEGABYTE),
  value: bytes === null ? null : bytes / MEGABYTE });
export const toBytes = (megabytes) => (megabytes === null ? null : Math.round(megabytes * MEGABYTE));

/**
 * The part of an account's page that changes it. `refresh()` is called after a change, to show the account anew.
 * Answers `{ element, isDone() }`: whether it was saved and nothing was typed since, so that it can be made anew.
 */
export function profile(user, refresh) {
  let stored = user;
  let isSaved = false;
  const isOwn = user.id === currentUser().id;
  let fields = profileFields(user);
  if (isOwn) {
    fields.push({ name: "current_password", label: t.current_password, hint: t.current_password_hint, type: "password",
      autocomplete: "current-password", reasons: ["WRONG_PASSWORD"] });
    fields = provable("own-account", fields);
  }
  const made = form({ fields, label: t.save, busy: t.saving, keeps: true, submit: save });
  async function save(/** @type {any} */ { current_password, oidc, ...values }) {
    isSaved = false;
    const changed = changes(stored, accountOf(values));
    if (!Object.keys(changed).length) return notify(t.unchanged);
    if (changed.role) await confirmRole(changed.role, { name: nameOf(stored), isOwn });
    stored = await put(`/users/${user.id}`, { ...changed, current_password: current_password || undefined, oidc });
    if (isOwn && changed.role) {
      forget(); // the change has ended all sessions, this one as well
      go("/console", { replace: true });
      return notify(t.own_role_done);
    }
    notify(t.saved);
    if (isOwn) setCurrentUser({ ...currentUser(), ...stored });
    isSaved = true;
    return refresh();
  }
  return { element: section(t.profile, {}, made.element), isDone: () => isSaved && !made.isTyped() };
}

/**
 * Asks before administrators take their own role away, and before somebody, or a `count` of people, becomes one. Throws
 * if it is given up.
 */
export async function confirmRole(role, { name, count = 1, isOwn = false }) {
  if (role !== "admin" && !isOwn) return;
  const isMeant = isOwn
    ? await confirmDialog(t.own_role_title, t.own_role, { label: t.own_role_do, danger: true, act() {} })
    : await confirmDialog(t.make_admin_title({ name, count }), t.make_admin, { label: t.make_admin_do, act() {} });
  if (!isMeant) throw new DOMException("The role stays as it is.", "AbortError");
}

/** The way back to the list, above the head of a page. */
export function backToUsers() {
  return el("p", { class: "back small" }, el("a", { href: "/console/users" }, icon("left"), admin.users.title));
}

export const badge = (text, kind = "") => el("span", { class: `badge ${kind}` }, text);

/** What is unusual about an account. */
export const exceptions = (user) => [
  !user.is_active && badge(admin.inactive, "is-danger"),
  user.role === "admin" && badge(admin.roles.admin, "is-accent"),
  user.second_factor && badge(admin.second_factor),
];
