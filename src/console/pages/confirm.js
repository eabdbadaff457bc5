// The page of the links in mails that confirm an e-mail address. Such a link only proves whose mailbox it is, so it
// takes the password, too. Nothing is sent until a person asks for it, because programs that examine mails open the
// links in them.

import { hasSession, post, service } from "../api.js";
import { button, buttonLink } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { barePage } from "../frame.js";
import { tokenForm, tokenIn } from "../mail-token.js";
import { takeRest } from "../router.js";
import { confirmation as t } from "../texts/confirmation.js";

/** What lets the OpenID provider take the place of a password, where there is one. */
const proof = service.provider && (await import("../proof.js"));
/** Who opens such a link is not known. */
const ANYBODY = { has_identity: true, has_password: true };

export function show() {
  const drawPage = barePage();
  const draw = (title, text, ...content) => drawPage(title, el("p", { class: "lead" }, text), content);
  const ask = (token) => draw(t.title, t.lead, confirmForm(token, () => {
    const [label, address] = hasSession() ? [t.to_profile, "/console/account"] : [t.sign_in, "/console"];
    draw(t.done_title, t.done, el("div", { class: "form-actions" }, buttonLink(label, address, { kind: "primary" })));
  }));
  const given = proof?.isBack("confirm")?.fields.token ?? tokenIn(takeRest());
  return given ? ask(given) : draw(t.missing_title, t.missing, tokenForm(ask));
}

function confirmForm(token, done) {
  const another = button(t.another, { kind: "quiet", act: askForUsername });
  const fields = [
    { name: "password", label: t.password, type: "password", required: true, autocomplete: "current-password",
      reasons: ["INVALID_CONFIRMATION_TOKEN"], "data-focus": "" },
    another,
    { name: "username", label: t.username, hint: t.username_hint, isHidden: true, autocomplete: "username",
      autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
  ];
  const made = form({
    fields: proof?.provable("confirm", fields, { who: ANYBODY, kept: () => ({ token }) }) ?? fields,
    label: t.submit,
    busy: t.busy,
    submit: async (values) => {
      try {
        await post("/auth/confirm-email", { token, ...values }, { anonymous: true });
      } catch (error) {
        // The link is still good for another name.
        if (error.reason === "USERNAME_TAKEN") askForUsername();
        throw error;
      }
      done();
    },
  });
  function askForUsername() {
    another.hidden = true;
    made.field("username").show(true);
    made.field("username").input.focus();
  }
  return made.element;
}
