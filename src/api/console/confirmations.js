// The mail with the link that confirms an e-mail address, once more.

import { post } from "./api.js";
import { section } from "./controls.js";
import { el, replace } from "./dom.js";
import { form } from "./forms.js";
import { confirmation } from "./texts/confirmation.js";

const t = confirmation.mail;

/**
 * A button that sends the mail again to `email`, or, if none is given, to the address that the person types. The API's
 * answer does not tell whether an account waits for that.
 */
export function mailAgain(email) {
  const said = el("p", { class: "aside", role: "status" });
  const { element } = form({
    fields: email ? [] : [{ name: "email", label: t.email, type: "email", required: true, autocomplete: "email" }],
    label: t.submit,
    busy: t.busy,
    kind: "",
    submit: async (values) => {
      const sent = { email, ...values };
      replace(said);
      await post("/auth/request-email-confirmation", sent, { anonymous: true });
      replace(said, t.sent(sent));
    },
  });
  return el("div", {}, element, said);
}

/** The same as a part of a page, with what it is for. */
export function mailSection(email) {
  return section(t.title, { lead: email ? t.to({ email }) : t.to_which }, mailAgain(email));
}
