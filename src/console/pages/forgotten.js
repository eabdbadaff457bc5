// Asking for a link to choose a new password.

import { post } from "../api.js";
import { button } from "../controls.js";
import { el, replace } from "../dom.js";
import { form } from "../forms.js";
import { brand, setTitle } from "../frame.js";
import { service } from "../limits.js";
import { texts } from "../texts.js";

const t = texts.forgotten;

export function show({ leaving }) {
  const place = el("div", { class: "narrow" });
  const draw = (title, ...content) => {
    const heading = el("h1", { tabindex: "-1" }, title);
    replace(place, brand(), heading, content,
      el("p", { class: "aside" }, el("a", { href: "/console" }, t.back)));
    return heading;
  };
  const ask = () => {
    const made = form({
      fields: [{ name: "email", label: t.email, type: "email", required: true, autocomplete: "email" }],
      label: t.submit,
      busy: t.busy,
      submit: (values) => send(values, draw, ask, leaving),
    });
    draw(t.title, el("p", { class: "lead" }, t.lead), made.element);
    return made.field("email").input;
  };
  if (service.passwordResets) ask().setAttribute("data-focus", "");
  else draw(t.title, el("p", {}, t.off));
  return place;
}

async function send({ email }, draw, ask, leaving) {
  let answer = [t.sent_title, el("p", {}, t.sent({ email })),
    el("div", { class: "form-actions" }, button(t.another, { act: () => ask().focus() }))];
  try {
    await post("/auth/request-password-reset", { email }, { anonymous: true });
  } catch (error) {
    if (error.reason !== "FEATURE_OFF") throw error;
    answer = [t.title, el("p", {}, t.off)];
  }
  if (leaving.aborted) return;
  draw(...answer).focus();
  setTitle(answer[0]);
}
