// Ways to the OpenID provider and back. What the person was about to do waits in the tab meanwhile, never a password.
// They come back to `/console/oidc`, which signs them in or goes on to the page that they came from.

import { ROUND_TRIP, addressOf, currentUser, service, sessionId } from "./api.js";
import { button, buttonLink } from "./controls.js";
import { el, nameText } from "./dom.js";
import { form } from "./forms.js";
import { texts } from "./texts.js";
import { identity as t } from "./texts/identity.js";

/** Milliseconds for which a way is kept; the provider's part of it ends sooner. */
const MAX_AGE = 15 * 60_000;
/** For a listener that comes before those that ask about what was typed. */
const ONCE_FIRST = { capture: true, once: true };
/** The id of the session that the provider has opened last in this browser. */
const OPENED = "cloakroom.by_provider";
/** Where one signs out at the provider after that session. */
const END = "cloakroom.provider_end";

/** The way that somebody has come back from, until its page takes it, with `proof` and `name` if it has succeeded. */
let returned = null;

/** The provider's name. */
export const provider = service.provider.name;
Object.assign(texts.errors, t.errors({ provider }));

const base64url = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/**
 * Goes to the provider. `purpose` says for what, `fields` what was typed; `isAgain`: the person must sign in there
 * anew; `back`: the address of the page to come back to.
 */
export async function depart({ purpose, isAgain = false, fields = {}, back = location.pathname + location.search }) {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const owner = currentUser()?.id;
  const trip = { verifier, purpose, isAgain, fields, back, owner, began: Date.now() };
  sessionStorage.setItem(ROUND_TRIP, JSON.stringify(trip));
  location.assign(addressOf("/auth/oidc/start", { challenge, again: isAgain ? 1 : null }));
}

/**
 * A link to the provider; `trip()` answers what `depart` needs. Opened in another tab, it leads to a page that begins
 * there. With `keeps` nothing that was typed is lost, so the person is not asked about it.
 */
export function providerLink(label, trip, /** @type {any} */ { keeps = false, ...options } = {}) {
  const go = (event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (keeps) addEventListener("beforeunload", (unload) => unload.stopImmediatePropagation(), ONCE_FIRST);
    depart(trip());
  };
  return buttonLink(label, "/console/oidc", { ...options, on: { click: go } });
}

/** The link by which people sign in; unless `trip` says otherwise, they come back to the present page. */
export function signInLink(options = {}, trip = () => ({ purpose: "sign-in" })) {
  return providerLink(t.sign_in({ provider }), trip, options);
}

/** The same as a part of a form with a password. */
export const signInWay = () => el("p", { class: "field" }, signInLink());

/** The ways to sign in: the form with a password, and the provider, which leads where few have a password. */
export function signInWays(form) {
  const link = (kind) => el("p", { class: "form-actions" }, signInLink({ kind }));
  const { leads, registration } = service.provider;
  const hint = registration && el("p", { class: "aside" }, t.new_account);
  if (!leads) return [form, link(""), hint];
  return [link("primary"), hint, el("details", {}, el("summary", {}, t.admins), form)];
}

/** What was kept when this tab went to the provider, once, or `null`. */
export function takeTrip() {
  const trip = JSON.parse(sessionStorage.getItem(ROUND_TRIP));
  sessionStorage.removeItem(ROUND_TRIP);
  return trip && Date.now() - trip.began < MAX_AGE ? trip : null;
}

/** Gives the page of a way what has come of it; without a `proof` only what was typed. */
export function hand(trip, proof, label) {
  returned = { ...trip, proof, name: label };
}

/** The way for this purpose if its person has just come back from it: `{ fields, proof, name }`. */
export function isBack(purpose) {
  const isTheirs = !returned?.owner || returned.owner === currentUser()?.id;
  return returned?.purpose === purpose && isTheirs ? returned : null;
}

/** The same, once. */
export function takeReturned(purpose) {
  const found = isBack(purpose);
  if (found) returned = null;
  return found;
}

/** Says who somebody is at the provider, beside `others`. */
export const identityNote = (label, ...others) => el("div", { class: "note" },
  el("p", {}, label ? [t.as({ provider }), " ", el("strong", {}, nameText(label))] : t.nameless({ provider })), others);

/** The link beside the choice of a password with the token of a mail. */
export function resetLink(token) {
  const link = providerLink(t.reset.use({ provider }), () => ({ purpose: "reset", fields: { token } }));
  return [el("p", { class: "form-actions" }, link), el("p", { class: "aside" }, t.reset.ends({ provider }))];
}

/** The heading, and a form that gives the account of a mail the identity of who has come back; `send` sends it. */
export function resetWith({ proof, name, fields }, send) {
  const made = form({
    fields: [identityNote(name)],
    label: t.reset.submit,
    busy: t.reset.busy,
    extra: providerLink(t.reset.other, () => ({ purpose: "reset", isAgain: true, fields })),
    submit: () => send({ token: fields.token, oidc: proof }, t.reset),
  });
  return [t.reset.title, el("p", { class: "lead" }, t.reset.lead), made.element];
}

/** Remembers that the provider has opened the session of this tab, and where one signs out there, if it says so. */
export function rememberOpening(end) {
  localStorage.setItem(OPENED, sessionId());
  localStorage.setItem(END, end ?? "");
}
/** The button for signing out at the provider too, if it has a page for that. */
export function signOutButton() {
  const end = localStorage.getItem(END);
  return /^https?:/.test(end) && button(t.sign_out({ provider }), { on: { click: () => location.assign(end) } });
}
/** What is said to people who sign out of such a session. */
export const stillSignedIn = t.still({ provider });
export const isOpened = () => Boolean(sessionId()) && localStorage.getItem(OPENED) === sessionId();
