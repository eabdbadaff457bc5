// One account: what it is, and what an administrator may do about it.

import { usage } from "../account.js";
import { isId, nameOf } from "../accounts.js";
import { ApiError, currentUser, get } from "../api.js";
import { buttonLink, load, pageHead, section, skeleton } from "../controls.js";
import { el, focusOn, isInField, nameText, replace } from "../dom.js";
import { timeText } from "../format.js";
import { notify, setTitle } from "../frame.js";
import { admin } from "../texts/admin.js";
import { activity, deletion, passwordLink, passwordSetter, secondFactor, sessions, tokens } from "./user-access.js";
import { backToUsers, profile } from "./user-profile.js";

const t = admin.user;

export function show({ params, signal }) {
  const head = pageHead(t.title);
  const heading = head.querySelector("h1");
  const under = el("div", { class: "badges under-title" });
  head.querySelector(".page-title").append(under);
  const place = el("div", {});
  const forms = {};
  const parts = (user) => {
    replace(heading, nameText(nameOf(user)));
    setTitle(nameOf(user));
    replace(under, badges(user));
    return user.id === currentUser().id ? ownParts(user, refresh, forms)
      : partsOf(user, signal, refresh, forms);
  };
  const find = async () => {
    // In the list an account has its figures.
    const [user] = isId(params.id) ? (await get("/admin/users", { ids: params.id }, signal)).items : [];
    if (!user) throw new ApiError({ status: 404, reason: "USER_NOT_FOUND" });
    return user;
  };
  const refresh = () => load(place, { signal, waiting: skeleton(12), work: find, show: parts });
  refresh();
  return el("div", {}, backToUsers(), head, place);
}

/** The form of the profile. It stays, with what was typed, while another part changes the account or it is saved. */
function keptProfile(user, refresh, forms) {
  if (forms.isTyped?.() === false) forms.profile = null;
  forms.isTyped = null;
  forms.profile ??= profile(user, async (isTyped) => {
    forms.isTyped = isTyped;
    const isShown = await refresh();
    forms.isTyped = null;
    return isShown;
  });
  return forms.profile;
}

function partsOf(user, signal, refresh, forms) {
  // What changes the account as a whole shows it anew; the button that was pressed is gone then.
  const changed = async (text) => {
    notify(text);
    if ((await refresh()) && !isInField()) focusOn();
  };
  forms.password ??= passwordSetter(user, refresh);
  return [
    facts(user),
    keptProfile(user, refresh, forms),
    forms.password,
    passwordLink(user),
    sessions(user, signal),
    tokens(user, signal),
    secondFactor(user, changed),
    activity(user, changed),
    deletion(user, signal),
  ];
}

/** Of their own account administrators change the profile here; for the rest there are the pages of everybody. */
function ownParts(user, refresh, forms) {
  const own = section(t.own, { lead: t.own_lead }, buttonLink(t.own_pages, "/console/account"));
  return [facts(user), keptProfile(user, refresh, forms), own];
}

function facts(user) {
  const audit = (name, label) => el("a", { href: `/console/audit?${name}=${user.id}` }, label);
  const rows = [
    [t.id, el("code", {}, user.id)],
    [t.created, timeText(user.created_at)],
    [t.updated, timeText(user.updated_at)],
    [t.last_login, timeText(user.last_login) || admin.never],
    [t.stored, usage(user.stats)],
    [t.audit, el("span", { class: "row" }, audit("actor_id", t.acted), audit("subject_id", t.acted_on))],
  ];
  return el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function badges(user) {
  const { active, inactive, roles, second_factor } = admin;
  const badge = (kind, text) => el("span", { class: `badge ${kind}` }, text);
  return [
    user.is_active ? badge("is-good", active) : badge("is-danger", inactive),
    user.role === "admin" && badge("is-accent", roles.admin),
    user.second_factor && badge("", second_factor),
    user.id === currentUser().id && badge("", t.you),
  ];
}
