// The page of the links in mails that let choose a password: after it was forgotten, and with an invitation.

import { currentUser, post, service, signOut } from "../api.js";
import { buttonLink } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { barePage } from "../frame.js";
import { tokenForm, tokenIn } from "../mail-token.js";
import { takeRest } from "../router.js";
import { texts } from "../texts.js";

const t = texts.reset;

/** The OpenID provider, which may take the place of a password, where there is one. */
const identity = service.provider && (await import("../identity.js"));

export function show() {
  const draw = barePage();
  const say = (title, text, label, address) => draw(title, el("p", { class: "lead" }, text),
    el("div", { class: "form-actions" }, buttonLink(label, address, { kind: "primary" })));
  /** Sends what the account is to have, and says `words`. */
  const send = async (values, words) => {
    try {
      await post("/auth/reset-password", values, { anonymous: true });
    } catch (error) {
      if (error.reason !== "INVALID_RESET_TOKEN") throw error;
      return say(t.ended_title, t.ended, t.another, "/console/forgotten");
    }
    // Whoever was signed in here goes on as the person whose account this is.
    if (currentUser()) await signOut();
    return say(words.done_title, words.done, texts.sign_in.title, "/console");
  };
  const choose = (token) => draw(t.title, form({
    fields: [{ name: "new_password", label: t.password, hint: texts.register.password_hint, type: "password",
      required: true, autocomplete: "new-password", "data-focus": "" }],
    label: t.submit,
    busy: t.busy,
    submit: (values) => send({ token, ...values }, t),
  }).element, identity?.resetLink(token));
  const back = identity?.takeReturned("reset");
  if (back?.proof) return draw(...identity.resetWith(back, send));
  const given = back?.fields.token ?? tokenIn(takeRest());
  return given ? choose(given) : draw(t.missing_title, el("p", { class: "lead" }, t.missing),
    tokenForm(choose, buttonLink(t.another, "/console/forgotten")));
}
