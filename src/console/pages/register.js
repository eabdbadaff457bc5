// Making an account of one's own, where the service lets everybody do so.

import { beginSession, post } from "../api.js";
import { el, replace } from "../dom.js";
import { form } from "../forms.js";
import { brand, setTitle } from "../frame.js";
import { service } from "../limits.js";
import { notify } from "../notices.js";
import { go } from "../router.js";
import { texts } from "../texts.js";
import { confirmation } from "../texts/confirmation.js";

const t = texts.register;

export function show({ leaving }) {
  const made = form({
    fields: [
      { name: "email", label: t.email, type: "email", required: true, autocomplete: "email", reasons: ["EMAIL_TAKEN"] },
      { name: "username", label: t.username, hint: t.username_hint, required: true, minlength: 3,
        autocomplete: "username", autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
      { name: "password", label: t.password, hint: t.password_hint, type: "password", required: true,
        minlength: 8, autocomplete: "new-password" },
    ],
    label: t.submit,
    busy: t.busy,
    submit: register,
  });
  made.field("email").input.setAttribute("data-focus", "");
  const place = el("div", {}, made.element);
  const close = () => replace(place, el("p", { class: "lead", role: "alert" }, t.closed));
  if (!service.registration) close();
  const heading = el("h1", { tabindex: "-1" }, t.title);
  async function register(values) {
    let account;
    try {
      account = await post("/auth/register", values, { anonymous: true });
    } catch (error) {
      if (error.reason !== "FEATURE_OFF") throw error;
      close();
      return;
    }
    if (service.emailConfirmation) {
      if (!leaving.aborted) showWaiting(account, heading, place);
      return;
    }
    // With a username the API makes the account only, so this signs in to it, which leads to the files.
    try {
      beginSession(await post("/auth/login", values, { anonymous: true }));
      notify(t.welcome({ name: values.username }));
    } catch {
      // Sending the form again would say that the address is taken.
      if (!leaving.aborted) go("/console", { replace: true });
      notify(t.made);
    }
  }
  return el("div", { class: "narrow" }, brand(), heading, place,
    el("p", { class: "aside" }, `${t.have} `, el("a", { href: "/console" }, t.sign_in)));
}

/** What to do next where addresses are confirmed. It is the same whether or not another account has the address. */
function showWaiting({ email }, heading, place) {
  const { title, lead, else: otherwise } = confirmation.registered;
  replace(heading, title);
  replace(place, el("p", { class: "lead" }, lead({ email })), el("p", { class: "lead" }, otherwise));
  setTitle(title);
  heading.focus();
}
