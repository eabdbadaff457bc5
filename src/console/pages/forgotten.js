// Asking for a link to choose a new password.

import { post, service } from "../api.js";
import { button } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { barePage } from "../frame.js";
import { texts } from "../texts.js";

const t = texts.forgotten;

export function show() {
  const drawPage = barePage();
  const back = el("p", { class: "aside" }, el("a", { href: "/console" }, t.back));
  const draw = (title, ...content) => drawPage(title, content, back);
  const refuse = () => draw(t.title, el("p", {}, t.off));
  const ask = () => draw(t.title, el("p", { class: "lead" }, t.lead), form({
    fields: [{ name: "email", label: t.email, type: "email", required: true, autocomplete: "email", "data-focus": "" }],
    label: t.submit,
    busy: t.busy,
    submit: async ({ email }) => {
      try {
        await post("/auth/request-password-reset", { email }, { anonymous: true });
      } catch (error) {
        if (error.reason !== "FEATURE_OFF") throw error;
        return refuse();
      }
      return draw(t.sent_title, el("p", {}, t.sent({ email })),
        el("div", { class: "form-actions" }, button(t.another, { act: ask })));
    },
  }).element);
  return service.passwordResets ? ask() : refuse();
}
