// Making an account for somebody, with an invitation by mail or with a password.

import { post } from "../api.js";
import { pageHead } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { notify } from "../notices.js";
import { go } from "../router.js";
import { admin } from "../texts/admin.js";
import { accountOf, backToUsers, confirmRole, profileFields } from "./user-profile.js";

const t = admin.new_user;

/** Whether the service sends mail, as far as is known: it says so when somebody is invited. */
let sendsMail = true;

export function show({ leaving }) {
  const made = form({
    fields: [
      ...profileFields({ role: "user", permissions: [], storage_quota: null, file_quota: null }, { isNew: true }),
      { name: "entry", label: t.entry, type: "select", value: "invite", required: true, hint: t.invite_hint,
        options: [["invite", t.invite], ["password", t.set_password]] },
      { name: "password", label: admin.user.password, hint: admin.user.password_hint, type: "password",
        required: true, isHidden: true, autocomplete: "new-password" },
    ],
    label: t.create,
    busy: t.creating,
    keeps: true,
    submit: (values) => create(values, withoutMail, leaving),
  });
  const entry = made.field("entry");
  const choose = () => {
    made.field("password").show(entry.value() === "password");
    entry.element.querySelector(".field-hint").hidden = entry.value() === "password";
  };
  const withoutMail = () => {
    sendsMail = false;
    entry.input.querySelector("[value=invite]").disabled = true;
    entry.set("password");
    choose();
    entry.error(t.no_mail);
    entry.input.focus();
  };
  entry.input.addEventListener("change", choose);
  if (!sendsMail) withoutMail();
  made.field("email").input.setAttribute("data-focus", "");
  return el("div", {}, backToUsers(), pageHead(t.title), made.element);
}

async function create(/** @type {any} */ { entry, username, ...values }, withoutMail, leaving) {
  await confirmRole(values.role, values);
  const account = /** @type {any} */ (accountOf(values));
  if (username) account.username = username;
  if (entry === "invite") account.invite = true;
  try {
    const user = await post("/users", account);
    notify(entry === "invite" ? t.invited(user) : t.created({ name: user.name || user.email }));
    if (!leaving.aborted) go(`/console/users/${user.id}`, { replace: true });
  } catch (error) {
    if (error.reason !== "FEATURE_OFF") throw error;
    withoutMail();
    throw new DOMException("Nobody has been invited.", "AbortError");
  }
}
