// The page of the links in mails that let choose a password: after it was forgotten, and with an invitation.

import { currentUser, post, signOut } from "../api.js";
import { buttonLink } from "../controls.js";
import { el, focusOn, replace } from "../dom.js";
import { form } from "../forms.js";
import { brand, setTitle } from "../frame.js";
import { tokenForm, tokenIn } from "../mail-token.js";
import { takeRest } from "../router.js";
import { texts } from "../texts.js";

const t = texts.reset;

export const isBare = true;

export function show({ leaving }) {
  let token = tokenIn(takeRest());
  const place = el("div", { class: "narrow" });
  const draw = (title, ...content) => replace(place, brand(), el("h1", { tabindex: "-1" }, title), content);
  const say = (title, text, action) => {
    if (leaving.aborted) return;
    draw(title, el("p", { class: "lead" }, text), el("div", { class: "form-actions" }, action));
    setTitle(title);
    focusOn();
  };
  const made = form({
    fields: [{ name: "new_password", label: t.password, hint: texts.register.password_hint, type: "password",
      required: true, autocomplete: "new-password", "data-focus": "" }],
    label: t.submit,
    busy: t.busy,
    submit: async (values) => {
      try {
        await post("/auth/reset-password", { token, ...values }, { anonymous: true });
      } catch (error) {
        if (error.reason !== "INVALID_RESET_TOKEN") throw error;
        say(t.ended_title, t.ended, buttonLink(t.another, "/console/forgotten", { kind: "primary" }));
        return;
      }
      // Whoever was signed in here goes on as the person whose password this is.
      if (currentUser()) await signOut();
      say(t.done_title, t.done, buttonLink(t.sign_in, "/console", { kind: "primary" }));
    },
  });
  if (token) return draw(t.title, made.element);
  const choose = (found) => {
    token = found;
    draw(t.title, made.element);
    setTitle(t.title);
    made.field("new_password").input.focus();
  };
  return draw(t.missing_title, el("p", { class: "lead" }, t.missing),
    tokenForm(choose, buttonLink(t.another, "/console/forgotten")));
}
