// Changing one's own password.

import { CURRENT_PASSWORD, accountPage, provable } from "../account.js";
import { currentUser, post, service } from "../api.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { notify } from "../frame.js";
import { texts } from "../texts.js";
import { account } from "../texts/account.js";

const t = account.password;

export function show() {
  const { username, email } = currentUser();
  const made = form({
    fields: provable("password", [
      // Password keepers read from it whose passwords these are.
      el("input", { type: "text", autocomplete: "username", value: username ?? email, hidden: true }),
      CURRENT_PASSWORD,
      { name: "new_password", label: t.next, hint: texts.register.password_hint, type: "password", required: true,
        minlength: 8, autocomplete: "new-password" },
    ]),
    label: t.submit,
    busy: t.busy,
    submit: async (values) => {
      await post("/users/change-password", values);
      for (const name of ["current_password", "new_password"]) made.field(name).set("");
      notify(t.done);
    },
  });
  const forgotten = el("p", { class: "aside" }, service.passwordResets ? t.forgotten : t.forgotten_no_mail);
  return accountPage(t.title, { lead: t.lead }, made.element, forgotten);
}
