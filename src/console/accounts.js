// What the pages for administrators share about accounts: how they are named, linked to and found.

import { ApiError, get } from "./api.js";
import { el, nameText, replace } from "./dom.js";
import { admin } from "./texts/admin.js";

/** How many accounts the API lists in one answer. */
const MAX_ACCOUNTS = 100;
/** Pages of accounts in which one is looked for. A text that more of them match says too little. */
const MAX_PAGES = 5;

/** Names by ids. `null` for an account that does not exist any more. */
const names = new Map();
addEventListener("person", () => names.clear());

/** What an account is called: its name, username or e-mail address, whichever it has first. */
export const nameOf = (user) => user.name || user.username || user.email;

/** The first digits of an id, for where the whole would be in the way. */
export const shortId = (id) => id.slice(0, 8);

/** An IP address, which is broken between its groups only. `""` where it is not known. */
export function addressText(address) {
  if (!address) return "";
  return el("span", { class: "address" }, address.split(/(?<=:)/).map((group) => [group, el("wbr")]));
}

/** Whether a text is an id. */
export const isId = (text) => /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text);

/** A link to an account of which only the id is known. It shows the id until `nameLinks` knows a name. */
export const accountLink = (id) =>
  el("a", { class: "clamp", href: `/console/users/${id}`, "data-account": id, title: id }, shortId(id));

/** Writes the names of accounts into the links of `accountLink` inside an element. */
export async function nameLinks(element, signal) {
  const links = [...element.querySelectorAll("[data-account]")];
  await lookUp(links.map((link) => link.dataset.account), signal);
  for (const link of links) {
    const name = names.get(link.dataset.account);
    if (name) replace(link, nameText(name));
  }
}

/** The name of the account with this id, or the id where it has none. */
export async function accountName(id, signal) {
  if (isId(id)) await lookUp([id.toLowerCase()], signal);
  return names.get(id.toLowerCase()) ?? id;
}

/** Looks up names that are not known yet. Pages are readable without, so a failure is not shown: the ids stay. */
async function lookUp(ids, signal) {
  const unknown = [...new Set(ids)].filter((id) => !names.has(id));
  try {
    while (unknown.length) {
      const some = unknown.splice(0, MAX_ACCOUNTS);
      const { items } = await get("/admin/users", { ids: some.join(), size: MAX_ACCOUNTS }, signal);
      for (const id of some) names.set(id, null);
      for (const user of items) names.set(user.id, nameOf(user));
    }
  } catch {
    // Asked again with the next page.
  }
}

/**
 * The id that a person means by a text: an id as it is, or a username, an e-mail address or a name that only one
 * account has, in whatever case. Throws an `ApiError` for the field `name` where no account has it, or several.
 */
export async function accountId(text, name) {
  if (text === "" || isId(text)) return text.toLowerCase();
  const isMeant = (given) => given?.toLowerCase() === text.toLowerCase();
  const named = [];
  let found;
  let pages = 1;
  for (let page = 1; !found && page <= Math.min(pages, MAX_PAGES); page += 1) {
    const answer = await get("/admin/users", { text, size: MAX_ACCOUNTS, page });
    ({ pages } = answer);
    found = answer.items.find(({ username, email }) => isMeant(username) || isMeant(email));
    named.push(...answer.items.filter((user) => isMeant(user.name)));
  }
  if (named.length === 1 && pages <= MAX_PAGES) found ??= named[0];
  const problem = named.length || pages > MAX_PAGES ? admin.several_accounts : admin.no_account;
  if (!found) throw new ApiError({ status: 422, fields: { [name]: problem } });
  names.set(found.id, nameOf(found));
  return found.id;
}
