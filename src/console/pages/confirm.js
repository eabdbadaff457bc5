// The page of the links in mails that confirm an e-mail address. Such a link only proves whose mailbox it is, so it
// takes the password, too. Nothing is sent until a person asks for it, because programs that examine mails open the
// links in them.

import { hasSession, post } from "../api.js";
import { button, buttonLink } from "../controls.js";
import { el, focusOn, replace } from "../dom.js";
import { form } from "../forms.js";
import { brand, setTitle } from "../frame.js";
import { tokenForm, tokenIn } from "../mail-token.js";
import { takeRest } from "../router.js";
import { confirmation as t } from "../texts/confirmation.js";

export const isBare = true;

export function show({ leaving }) {
  let token = tokenIn(takeRest());
  const place = el("div", { class: "narrow" });
  const draw = (title, text, ...content) => replace(place, brand(), el("h1", { tabindex: "-1" }, title),
    el("p", { class: "lead" }, text), content);
  const another = button(t.another, { kind: "quiet", act: () => askForUsername() });
  const made = form({
    fields: [
      { name: "password", label: t.password, type: "password", required: true, autocomplete: "current-password",
        reasons: ["INVALID_CONFIRMATION_TOKEN"], "data-focus": "" },
      another,
      { name: "username", label: t.username, hint: t.username_hint, isHidden: true, autocomplete: "username",
        autocapitalize: "none", reasons: ["USERNAME_TAKEN"] },
    ],
    label: t.submit,
    busy: t.busy,
    submit: confirm,
  });
  function askForUsername() {
    another.hidden = true;
    made.field("username").show(true);
    made.field("username").input.focus();
  }
  async function confirm(values) {
    try {
      await post("/auth/confirm-email", { token, ...values }, { anonymous: true });
    } catch (error) {
      // The link is still good for another name.
      if (error.reason === "USERNAME_TAKEN") askForUsername();
      throw error;
    }
    if (leaving.aborted) return;
    const [label, address] = hasSession() ? [t.to_profile, "/console/account"] : [t.sign_in, "/console"];
    draw(t.done_title, t.done, el("div", { class: "form-actions" }, buttonLink(label, address, { kind: "primary" })));
    setTitle(t.done_title);
    focusOn();
  }
  if (token) return draw(t.title, t.lead, made.element);
  return draw(t.missing_title, t.missing, tokenForm((found) => {
    token = found;
    draw(t.title, t.lead, made.element);
    setTitle(t.title);
    made.field("password").input.focus();
  }));
}
