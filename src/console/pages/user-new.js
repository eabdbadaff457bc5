// Accounts for others: invitations by mail to one person or many. Where the service sends no mail, one account a time,
// with a password.

import { post } from "../api.js";
import { countdown, pageHead } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { ApiError } from "../errors.js";
import { form } from "../forms.js";
import { formatNumber } from "../format.js";
import { service } from "../limits.js";
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
  const more = [{ ...name, hint: t.name_hint }, username, ...limits, ...(isByMail ? [password] : [])];
  const outcome = el("div", { class: "outcome" });
  const made = form({
    fields: [
      { name: "addresses", label: isByMail ? t.addresses : admin.user.email, hint: isByMail && t.addresses_hint,
        type: isByMail ? "textarea" : "text", rows: 3, required: true, names: ["email"], reasons: ["EMAIL_TAKEN"],
        autocomplete: "off", autocapitalize: "none", spellcheck: "false", "data-focus": "" },
      { ...role, hint: "" }, ...(isByMail ? [] : [password]), ...more,
    ],
    label: isByMail ? t.invite : t.create,
    busy: isByMail ? t.inviting : t.creating,
    keeps: true,
    submit: async ({ addresses, ...values }) => {
      const people = peopleOf(addresses, values);
      await confirmRole(values.role, { name: values.name || people[0].address, count: people.length });
      await makeAll(people, accountOf(values), { field: made.field("addresses"), outcome, leaving });
      for (const each of SINGLE) made.field(each).set("");
    },
  });
  const folded = el("details", { class: "more" }, el("summary", {}, t.more));
  made.field(isByMail ? "role" : "password").element.after(folded);
  folded.append(...more.map((each) => made.field(each.name).element));
  return el("div", {}, backToUsers(), pageHead(isByMail ? t.title : t.title_without_mail), made.element, outcome);
}

/** The people that a text names, each once. Throws an `ApiError` where a part of it is no address. */
function peopleOf(text, values) {
  const found = [...text.matchAll(PERSON)].map(([written, quoted, plain, address = written]) =>
    ({ written: written.trim(), name: (quoted ?? plain ?? "").trim(), address: address.trim() }));
  const wrong = found.filter(({ address }) => !ADDRESS.test(address)).map(({ written }) => written);
  const firstOf = (person) => found.find(({ address }) => address.toLowerCase() === person.address.toLowerCase());
  const people = found.filter((person) => person === firstOf(person));
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
  const left = [...people];
  const refused = [];
  replace(outcome, said, list);
  field.input.readOnly = true;
  try {
    for (; left.length && !leaving.aborted; left.shift()) {
      const [{ written, name, address }] = left;
      const entry = password ? { password } : { invite: true };
      const body = { ...account, ...entry, username: username || undefined, email: address,
        name: account.name || name || address.split("@")[0] };
      try {
        const wait = (clock) => replace(said, texts.next_try, " ", clock);
        const { id } = await patiently(() => post("/users", body), wait);
        list.append(line("is-good", password ? t.made : t.invited, el("a", { href: `/console/users/${id}` }, address)));
      } catch (error) {
        if (people.length === 1 || !REFUSALS.includes(error.status)) throw error;
        const isThere = error.reason === "EMAIL_TAKEN";
        if (!isThere) refused.push(written);
        list.append(line(isThere ? "" : "is-danger", isThere ? t.there : t.refused, nameText(address),
          !isThere && el("span", { class: "soft" }, error.message)));
      }
      const figures = { done: formatNumber(people.length - left.length + 1), total: formatNumber(people.length) };
      replace(said, people.length > 1 && t.progress(figures), refused.length > 0 && ` ${t.kept}`);
    }
  } finally {
    field.input.readOnly = false;
    field.set([...refused, ...left.map(({ written }) => written)].join("\n"));
  }
}

const line = (kind, state, ...parts) =>
  el("li", { class: "badges" }, el("span", { class: `badge ${kind}` }, state), parts);

/** What `work` answers, which is done again after each 429, as soon as the service allows it. */
async function patiently(work, waits) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.status !== 429) throw error;
      await new Promise((resolve) => { waits(countdown(error.retryAt, () => resolve(null))); });
    }
  }
}
