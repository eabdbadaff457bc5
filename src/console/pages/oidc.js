// Where people come back from the OpenID provider: it signs them in, or leads to the page that has sent them there.

import { beginSession, isKept, post, service } from "../api.js";
import { buttonLink, errorBox, skeleton } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { barePage } from "../frame.js";
import { hand, identityNote, provider, providerLink, rememberOpening, signInLink, takeTrip } from "../identity.js";
import { go, takeRest } from "../router.js";
import { texts } from "../texts.js";
import { identity } from "../texts/identity.js";

const t = identity.page;

export function show({ leaving }) {
  const rest = new URLSearchParams(takeRest().replace(/^#/, ""));
  const [error, code, label, id, end] = ["error", "code", "name", "request_id", "end"].map((name) => rest.get(name));
  const trip = takeTrip();
  const draw = barePage();
  const say = (title, text, ...actions) => leaving.aborted || draw(title,
    [text].flat(2).map((part) => (part instanceof Node ? part : el("p", { class: "lead" }, part))),
    el("div", { class: "form-actions" }, actions));
  const element = draw(t.title, skeleton());
  if (error) sayReason({ error, id }, trip, say);
  else if (!trip || !code) say(t.unknown_title, t.unknown, signInLink({ kind: "primary" }, toStart));
  else if (trip.purpose === "sign-in") signIn({ trip, code, label, end, draw, say, leaving });
  else {
    hand(trip, { code, verifier: trip.verifier }, label);
    queueMicrotask(() => go(trip.back, { replace: true }));
  }
  return element;
}

const toStart = () => ({ purpose: "sign-in", back: "/console" });

/** Why the provider has confirmed nobody. What was typed is there again where the person goes back. */
function sayReason({ error, id }, trip, say) {
  const reasons = t.reasons({ provider });
  if (trip) hand(trip, null, "");
  const known = Object.hasOwn(reasons, error) ? error : "invalid";
  // Some providers do not say when the person has signed in. To connect an account, their word is then not needed.
  const isUnable = known === "invalid" && trip?.isAgain;
  const next = isUnable && trip.purpose === "join" ? { ...trip, isAgain: false } : trip ?? toStart();
  const request = /^[\da-f-]{36}$/.test(id) ? [el("p", { class: "aside" }, t.request({ id }))] : [];
  say(t.failed, [reasons[known], ...(isUnable && next === trip ? [t.unable({ provider })] : []), request],
    providerLink(t.again, () => next, { kind: "primary" }),
    // Where signing in leads straight to the provider, the way back would lead there again.
    buttonLink(t.back, trip?.purpose === "sign-in" && service.provider?.leads ? "/console?password"
      : trip?.back ?? "/console"));
}

function signIn({ trip, code, label, end, draw, say, leaving }) {
  const proof = { code, verifier: trip.verifier };
  const send = async (values) => {
    const answer = await post("/auth/oidc/token", { ...proof, ...values }, { anonymous: true });
    if (leaving.aborted) return;
    beginSession(answer, isKept());
    rememberOpening(end);
    // Another person gets no page of the one who was here before.
    const isTheirs = !trip.owner || trip.owner === answer.user.id;
    go(isTheirs ? trip.back : "/console", { replace: true });
  };
  const again = signInLink({ kind: "primary" }, () => trip);
  const fail = (error) => {
    const isAnothers = error.reason === "EMAIL_TAKEN";
    if (error.reason === "NO_ACCOUNT" || isAnothers) {
      const [way, action] = service.provider.leads && service.passwordResets
        ? [t.no_account_link, buttonLink(t.to_link, "/console/forgotten", { kind: "primary" })]
        : [t.no_account_join, buttonLink(t.to_sign_in, "/console?password", { kind: "primary" })];
      say(t.no_account_title, [isAnothers ? t.email_taken : t.no_account, way, identityNote(label)], action,
        providerLink(identity.reset.other, () => ({ ...trip, isAgain: true })));
    } else if (error.retryAt) {
      draw(t.title, errorBox(error, { again: attempt }));
    } else {
      say(t.failed, error.message, again, buttonLink(t.back, trip.back));
    }
  };
  const attempt = async () => {
    draw(t.title, el("p", { class: "lead", role: "status" }, t.waiting));
    try {
      await send({});
    } catch (error) {
      if (error.reason !== "SECOND_FACTOR_REQUIRED") return fail(error);
      askForCode({ label, send, draw, fail });
    }
  };
  attempt();
}

function askForCode({ label, send, draw, fail }) {
  const made = form({
    fields: [{ name: "otp", label: texts.sign_in.code, hint: texts.sign_in.code_hint, required: true, dir: "ltr",
      autocomplete: "one-time-code", autocapitalize: "none", reasons: ["SECOND_FACTOR_INVALID"], "data-focus": "" }],
    label: t.submit,
    busy: t.busy,
    submit: async (values) => {
      try {
        await send(values);
      } catch (error) {
        if (error.reason === "SECOND_FACTOR_INVALID" || error.retryAt) throw error;
        fail(error);
      }
    },
  });
  draw(t.code_title, el("p", { class: "lead" }, t.code_lead), identityNote(label), made.element);
}
