// The profile: username, e-mail address and name, and what else the service knows about the account.

import { CURRENT_PASSWORD, accountPage, provable, usage } from "../account.js";
import { get, put, service, setCurrentUser } from "../api.js";
import { load, section, skeleton } from "../controls.js";
import { append, el, nameText } from "../dom.js";
import { changes, form } from "../forms.js";
import { formatDate, timeText } from "../format.js";
import { notify } from "../frame.js";
import { account } from "../texts/account.js";

const t = account.profile;

export function show({ leaving }) {
  const place = el("div", {});
  load(place, {
    signal: leaving,
    waiting: skeleton(10),
    work: () => get("/users/me", {}, leaving),
    show: (user) => {
      setCurrentUser(user);
      return [profileForm(user), section(t.facts, {}, facts(user))];
    },
  });
  return accountPage(t.title, {}, place);
}

function fieldsOf(user) {
  // Where the service sends no mail, nobody is told that the address is another one.
  const hint = service.emailConfirmation ? t.email_hint_confirmed : service.passwordResets && t.email_hint;
  return [
    { name: "username", label: t.username, hint: t.username_hint, value: user.username, minlength: 3, maxlength: 50,
      required: Boolean(user.username), autocomplete: "username", autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
    { name: "email", label: t.email, hint, type: "email", value: user.email, required: true,
      maxlength: 255, autocomplete: "email", reasons: ["EMAIL_TAKEN"] },
    { ...CURRENT_PASSWORD, hint: t.password_hint, isHidden: true },
    { name: "name", label: t.name, hint: t.name_hint, value: user.name, maxlength: 255, autocomplete: "name" },
  ];
}

/** Sends what was changed. A service that asks for the password before another address is used says so by refusing. */
function profileForm(user) {
  let stored = user;
  const fields = provable("profile", fieldsOf(user));
  const made = form({ fields, label: t.submit, busy: t.busy, submit: save, keeps: true });
  const email = made.field("email");
  const password = made.field("current_password");
  let asksForPassword = !password.element.hidden;
  email.input.addEventListener("input", () => password.show(asksForPassword && email.value() !== stored.email));

  async function save({ current_password, oidc, ...values }) {
    const changed = changes(stored, values);
    if (!Object.keys(changed).length) return notify(t.unchanged);
    let answer;
    try {
      answer = await put("/users/me", { ...changed, current_password, oidc });
    } catch (error) {
      if (error.reason !== "WRONG_PASSWORD" || !password.element.hidden) throw error;
      asksForPassword = true;
      password.show(true);
      password.input.focus();
      throw new DOMException("Nothing has been changed yet.", "AbortError");
    }
    if (password.element.contains(document.activeElement)) email.input.focus();
    password.set("");
    password.show(false);
    const { pending_email: pending, ...now } = answer;
    stored = { ...stored, ...now };
    setCurrentUser(stored);
    if (email.value() === values.email) email.set(stored.email); // or else the person is typing another one
    return notify(pending ? t.saved_waiting({ email: pending }) : t.saved);
  }
  return made.element;
}

function facts(user) {
  const known = [
    [t.role, t.roles[user.role] ?? user.role],
    [t.permissions, user.permissions.length > 0 && nameText(user.permissions.join(", "))],
    [t.second_factor, el("a", { href: "/console/account/second-factor" }, user.second_factor ? t.on : t.off)],
    [t.files, usage(user.stats)],
    [t.last_login, timeText(user.last_login)],
    [t.since, timeText(user.created_at, formatDate)],
  ].filter(([, value]) => value);
  return append(el("dl", { class: "facts" }), known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
