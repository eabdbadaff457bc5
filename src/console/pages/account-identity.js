// The identity at the OpenID provider by which one signs in: connecting it with one's account, and disconnecting it.

import { CURRENT_PASSWORD, accountPage, sayDone } from "../account.js";
import { del, forget, get, post, service, setCurrentUser } from "../api.js";
import { load, section } from "../controls.js";
import { el, focusOn } from "../dom.js";
import { form } from "../forms.js";
import { notify } from "../frame.js";
import { identityNote, isOpened, provider, providerLink, takeReturned } from "../identity.js";
import { account } from "../texts/account.js";
import { identity } from "../texts/identity.js";

const t = identity.account;

export function show({ leaving }) {
  const place = el("div", {});
  const draw = (said) => load(place, {
    signal: leaving,
    work: () => get("/users/me", {}, leaving),
    show: (user) => {
      setCurrentUser(user);
      const note = said && el("p", { class: "note is-warn", role: "alert" }, said);
      return [note, user.has_identity ? whenJoined(user, draw) : whenApart(user, draw)];
    },
  });
  draw();
  return accountPage(account.identity.title, { lead: t.lead({ provider }) }, place);
}

function whenApart(user, draw) {
  const back = takeReturned("join");
  if (!back?.proof) {
    const link = providerLink(t.connect({ provider }), () => ({ purpose: "join", isAgain: true }), { kind: "primary" });
    return section(t.apart_title, { lead: t.apart }, el("div", { class: "form-actions" }, link));
  }
  const made = form({
    fields: [identityNote(back.name), ...(user.has_password ? [CURRENT_PASSWORD] : [])],
    label: t.join,
    busy: t.joining,
    submit: async (values) => {
      try {
        await post("/auth/oidc/join", { ...back.proof, ...values });
      } catch (error) {
        // The proof is used up, unless the request was not looked at.
        if (error.retryAt || !error.status) throw error;
        if (await draw(t.refused({ sentence: error.message }))) focusOn();
        return;
      }
      sayDone(t.joined, await draw());
    },
  });
  return section(t.join_title, { lead: t.join_lead }, made.element);
}

function whenJoined({ has_password, role }, draw) {
  const made = form({
    fields: [CURRENT_PASSWORD],
    label: t.leave,
    busy: t.leaving,
    kind: "danger",
    submit: async (values) => {
      const wasOpened = isOpened();
      await del("/auth/oidc", { body: values });
      // The sessions that it has opened have ended, as this one may have.
      if (wasOpened) {
        forget();
        notify(t.left_here);
        return;
      }
      sayDone(t.left, await draw());
    },
  });
  const isLockedOut = service.provider.leads && role !== "admin";
  const first = el("p", {}, t.no_password, " ", el("a", { href: "/console/account/password" }, t.choose), ".");
  return [section(t.joined_title, { lead: t.is_joined({ provider }) }),
    section(t.leave_title, { lead: has_password && (isLockedOut ? t.leave_locked : t.leave_lead) },
      has_password ? made.element : first)];
}
