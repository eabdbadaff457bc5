// The page of the links in mails that confirm an e-mail address. Such a link only proves whose mailbox it is, so the
// account is named by its password. Nothing is sent until a person asks for it, because programs that examine mails
// open the links in them.

import { hasSession, post } from "../api.js";
import { mailAgain, mailSection } from "../confirmations.js";
import { button, buttonLink } from "../controls.js";
import { el, focusOn, replace } from "../dom.js";
import { form } from "../forms.js";
import { brand, setTitle } from "../frame.js";
import { takeToken } from "../router.js";
import { confirmation as t } from "../texts/confirmation.js";

export const isBare = true;

export function show({ leaving }) {
  const token = takeToken();
  const place = el("div", { class: "narrow" });
  const draw = (title, text, ...content) => replace(place, brand(), el("h1", { tabindex: "-1" }, title),
    el("p", { class: "lead" }, text), content);
  if (!token) return draw(t.missing_title, t.missing, mailAgain());
  const another = mailSection();
  const made = passwordForm(async (values) => {
    try {
      await post("/auth/confirm-email", { token, ...values }, { anonymous: true });
    } catch (error) {
      if (error.reason === "INVALID_CONFIRMATION_TOKEN") place.append(another);
      throw error;
    }
    if (leaving.aborted) return;
    const [label, address] = hasSession() ? [t.to_profile, "/console/account"] : [t.sign_in, "/console"];
    draw(t.done_title, t.done, el("div", { class: "form-actions" }, buttonLink(label, address, { kind: "primary" })));
    setTitle(t.done_title);
    focusOn();
  });
  return draw(t.title, t.lead, made.element);
}

/** The form for the password, and for the username where somebody says that it is needed. */
function passwordForm(submit) {
  const several = button(t.several, { kind: "quiet", act: () => {
    several.hidden = true;
    made.field("username").show(true);
    made.field("username").input.focus();
  } });
  const made = form({
    fields: [
      { name: "password", label: t.password, type: "password", required: true, autocomplete: "current-password",
        reasons: ["INVALID_CONFIRMATION_TOKEN"], "data-focus": "" },
      several,
      { name: "username", label: t.username, hint: t.username_hint, isHidden: true, autocomplete: "username",
        autocapitalize: "none" },
    ],
    label: t.submit,
    busy: t.busy,
    submit,
  });
  return made;
}
