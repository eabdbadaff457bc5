// Accounts for others: invitations by mail to one person or many. Where the service sends no mail, one account a time,
// with a password.

import { ApiError, post, service } from "../api.js";
import { countdown, pageHead } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { form } from "../forms.js";
import { formatNumber } from "../format.js";
import { texts } from "../texts.js";
import { admin } from "../texts/admin.js";
import { accountOf, backToUsers, confirmRole, profileFields } from "./user-profile.js";

const t = admin.new_user;
const NEW = { role: "user", permissions: [], storage_quota: null, file_quota: null };
/** What only one account can have. */
const SINGLE = ["name", "username", "password"];
/** A name in quotes or without, and an address in angle brackets; or an address alone. */
const PERSON = /(?:"([^"]*)"|([^<>,;"@\n]*))\s*<([^<>]*)>|[^\s,;<>]+/g;
const ADDRESS = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
/** Statuses with which the service refuses one account, and would perhaps take the next. */
const REFUSALS = [400, 409, 422];

export function show({ leaving }) {
  const isByMail = service.passwordResets;
  const [, name, username, role, ...limits] = profileFields(NEW);
  const password = { name: "password", label: admin.user.password, type: "password", required: !isByMail,
    hint: isByMail ? t.password_hint : t.no_mail, minlength: 8, autocomplete: "new-password" };
  const more = [{ ...name, hint: t.name_hint }, username, ...limits, password];
  const outcome = el("div", { class: "outcome stack" });
  const made = form({
    fields: [
      { name: "addresses", label: t.addresses, hint: isByMail && t.addresses_hint, type: "textarea", rows: 3,
        required: true, names: ["email"], reasons: ["EMAIL_TAKEN"], autocapitalize: "none", spellcheck: "false",
        "data-focus": "" },
      { ...role, hint: "" }, ...more,
    ],
    label: isByMail ? t.invite : t.title_without_mail,
    keeps: true,
    submit: async ({ addresses, ...values }) => {
      const people = peopleOf(addresses, values);
      await confirmRole(values.role, { name: values.name || people[0].address, count: people.length });
      await makeAll(people, accountOf(values), { field: made.field("addresses"), outcome, leaving });
      for (const each of SINGLE) made.field(each).set("");
    },
  });
  const folded = el("details", { open: !isByMail }, el("summary", {}, t.more));
  made.field("role").element.after(folded);
  folded.append(...more.map((each) => made.field(each.name).element));
  return el("div", {}, backToUsers(), pageHead(isByMail ? t.title : t.title_without_mail), made.element, outcome);
}

/** The people that a text names. Throws an `ApiError` where a part of it is no address. */
function peopleOf(text, values) {
  const people = [...text.matchAll(PERSON)].map(([written, quoted, plain, address = written]) =>
    ({ written: written.trim(), name: (quoted ?? plain ?? "").trim(), address: address.trim() }));
  const wrong = people.filter(({ address }) => !ADDRESS.test(address)).map(({ written }) => written);
  const fields = {};
  if (wrong.length || !people.length) fields.addresses = t.no_address({ words: wrong.join(", ") || text });
  if (people.length > 1) for (const name of SINGLE) if (values[name]) fields[name] = t.one_only;
  if (Object.keys(fields).length) throw new ApiError({ status: 422, fields });
  return people;
}

/**
 * Makes the accounts one after the other, and lists how each ended. The addresses that were refused stay in the field,
 * and those that were not sent yet where the service is away. What is wrong with the only one is thrown, for the form.
 */
async function makeAll(people, { username, password, ...account }, { field, outcome, leaving }) {
  const said = el("p", { class: "soft", role: "status" });
  const list = el("ul", { class: "plain-list" });
  const say = (kind, state, ...parts) =>
    list.append(el("li", { class: "row" }, el("span", { class: `badge ${kind}` }, state), parts));
  const entry = password ? { password } : { invite: true };
  const left = [...people];
  const refused = [];
  replace(outcome, said, list);
  field.input.readOnly = true;
  try {
    while (left.length && !leaving.aborted) {
      const [{ written, name, address }] = left;
      try {
        const { id } = await post("/users", { ...account, ...entry, username: username || undefined, email: address,
          name: account.name || name || address.split("@")[0] });
        say("is-good", password ? t.made : t.invited, el("a", { href: `/console/users/${id}` }, address));
      } catch (error) {
        if (error.status === 429) {
          await new Promise((resolve) => {
            replace(said, texts.next_try, " ", countdown(error.retryAt, () => resolve(null)));
          });
          continue;
        }
        if (people.length === 1 || !REFUSALS.includes(error.status)) throw error;
        const isThere = error.reason === "EMAIL_TAKEN";
        if (!isThere) refused.push(written);
        say(isThere ? "" : "is-danger", isThere ? t.there : t.refused, isThere
          ? el("a", { href: `/console/users?search=${encodeURIComponent(address)}` }, address) : nameText(address),
        !isThere && error.message);
      }
      left.shift();
      const figures = { done: formatNumber(people.length - left.length), total: formatNumber(people.length) };
      replace(said, people.length > 1 && t.progress(figures), refused.length > 0 && ` ${t.kept}`);
    }
  } finally {
    field.input.readOnly = false;
    field.set([...refused, ...left.map(({ written }) => written)].join("\n"));
  }
}
