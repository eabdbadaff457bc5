// Signing in, as a page and as the dialog that a lost session brings up.

import { beginSession, currentUser, forget, isKept, post, service } from "../api.js";
import { formDialog, STAY } from "../dialogs.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { brand, notify } from "../frame.js";
import { texts } from "../texts.js";

const t = texts.sign_in;
/** Sign-in by the OpenID provider, where there is one. */
const identity = service.provider && (await import("../identity.js"));
/** After these the field for the code is shown. */
const ASKS_FOR_CODE = ["SECOND_FACTOR_REQUIRED", "SECOND_FACTOR_INVALID"];

export function show() {
  const made = form(signInForm(() => made, beginSession));
  // Another person may have no second factor, and then could not send the form with an empty field for its code.
  made.field("username").input.addEventListener("input", () => {
    made.field("code").set("");
    made.field("code").show(false);
  });
  const { leads } = service.provider ?? {};
  if (leads && !new URLSearchParams(location.search).has("password")) identity.depart({ purpose: "sign-in" });
  if (!leads) made.field("username").input.setAttribute("data-focus", "");
  // The page that most people go on to comes while the service checks the password.
  made.element.addEventListener("submit", () => import("./files.js").catch(() => {}));
  return el("div", { class: "narrow" }, brand(), el("h1", { tabindex: "-1" }, t.title),
    identity ? identity.signInWays(made.element) : made.element,
    el("p", { class: "aside" }, el("a", { href: "/console/forgotten" }, t.forgotten)),
    service.registration && el("p", { class: "aside" }, `${t.no_account} `,
      el("a", { href: "/console/register" }, texts.register.title)),
    service.emailConfirmation && el("p", { class: "aside" }, t.just_registered));
}

/**
 * The options of the form. `made()` is the form itself; `done(answer, keep)` gets the API's token response, and whether
 * the browser is to keep the session; `username` is the name that must be used, if any; `others` stand above the
 * fields.
 */
function signInForm(made, done, username = "", others = []) {
  const submit = async ({ keep, ...values }) => {
    try {
      return done(await post("/auth/login", values, { anonymous: true }), keep);
    } catch (error) {
      if (ASKS_FOR_CODE.includes(error.reason)) askForCode(made().field("code"), error);
      if (error.reason === "SECOND_FACTOR_REQUIRED") return STAY;
      if (error.reason === "BAD_CREDENTIALS") made().field("password").set("");
      throw error;
    }
  };
  return {
    fields: [
      ...others,
      { name: "username", label: t.name, value: username, required: true, autocomplete: "username",
        autocapitalize: "none", readonly: Boolean(username) },
      { name: "password", label: t.password, type: "password", required: true, autocomplete: "current-password",
        reasons: ["BAD_CREDENTIALS", "TOO_MANY_WRONG_CODES"] },
      { name: "code", label: t.code, hint: t.code_hint, required: true, autocomplete: "one-time-code",
        autocapitalize: "none", inputmode: "text", isHidden: true, reasons: ["SECOND_FACTOR_INVALID"] },
      { name: "keep", label: t.keep, hint: t.keep_hint, type: "checkbox", value: isKept() },
    ],
    label: t.title,
    busy: t.busy,
    submit,
  };
}

function askForCode(code, error) {
  if (error.reason === "SECOND_FACTOR_INVALID") code.set("");
  code.show(true);
  code.input.focus();
}

/**
 * Asks to sign in again above the page, which stays as it is. Answers whether the same person did: then what was asked
 * of the API is asked again. Where the person gives up, the page goes.
 */
export async function signInDialog() {
  const before = currentUser();
  const given = await formDialog(t.again_title, (made) => ({
    text: t.again,
    cancel: texts.frame.sign_out,
    keep: true,
    ...signInForm(made, (...all) => all, before?.username ?? before?.email, identity ? [identity.signInWay()] : []),
  }));
  if (!given) {
    if (!forget()) notify(texts.main.signed_out_here);
    return false;
  }
  beginSession(...given);
  return before?.id === currentUser().id;
}
