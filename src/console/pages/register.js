// Making an account of one's own, where the service lets everybody do so.

import { beginSession, post, service } from "../api.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { barePage, notify } from "../frame.js";
import { go } from "../router.js";
import { texts } from "../texts.js";
import { confirmation } from "../texts/confirmation.js";

const t = texts.register;

export function show({ leaving }) {
  const drawPage = barePage();
  const aside = el("p", { class: "aside" }, `${t.have} `, el("a", { href: "/console" }, texts.sign_in.title));
  const draw = (title, ...content) => drawPage(title, el("div", {}, content), aside);
  const close = () => draw(t.title, el("p", { class: "lead", role: "alert" }, t.closed));
  async function register(values) {
    let account;
    try {
      account = await post("/auth/register", values, { anonymous: true });
    } catch (error) {
      if (error.reason !== "FEATURE_OFF") throw error;
      return close();
    }
    if (service.emailConfirmation) {
      // What to do next is the same whether or not another account has the address.
      const { lead, else: otherwise } = confirmation.registered;
      const told = [lead(account), otherwise].map((text) => el("p", { class: "lead" }, text));
      return draw(texts.forgotten.sent_title, told);
    }
    // With a username the API makes the account only, so this signs in to it, which leads to the files.
    try {
      beginSession(await post("/auth/login", values, { anonymous: true }));
      return notify(t.welcome({ name: values.username }));
    } catch {
      // Sending the form again would say that the address is taken.
      if (!leaving.aborted) go("/console", { replace: true });
      return notify(t.made);
    }
  }
  return service.registration ? draw(t.title, form({
    fields: [
      { name: "email", label: t.email, type: "email", required: true, autocomplete: "email", reasons: ["EMAIL_TAKEN"],
        "data-focus": "" },
      { name: "username", label: t.username, hint: t.username_hint, required: true, minlength: 3,
        autocomplete: "username", autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
      { name: "password", label: texts.sign_in.password, hint: t.password_hint, type: "password", required: true,
        minlength: 8, autocomplete: "new-password" },
    ],
    label: t.submit,
    busy: t.busy,
    submit: register,
  }).element) : close();
}
