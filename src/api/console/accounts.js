// What the pages for administrators share about accounts: how they are named, linked to and found.

import { get } from "./api.js";
import { el, nameText, replace } from "./dom.js";
import { ApiError } from "./errors.js";
import { texts } from "./texts.js";

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** How many names of accounts a list looks up: each is a request, and the service counts these. */
const MAX_LOOK_UPS = 20;

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
export const isId = (text) => UUID.test(text);

/** A link to an account of which only the id is known. It shows the id until `nameLinks` knows a name. */
export function accountLink(id) {
  return el("a", { class: "clamp", href: `/console/users/${id}`, data: { account: id }, title: id }, shortId(id));
}

/**
 * Writes the names of accounts into the links of `accountLink` inside an element, one after another. A list is readable
 * without, so a failure is not shown, and ends it.
 */
export async function nameLinks(element, signal) {
  const links = [...element.querySelectorAll("[data-account]")];
  const ids = new Set(links.map((link) => link.dataset.account));
  const unknown = [...ids].filter((id) => !names.has(id)).slice(0, MAX_LOOK_UPS);
  const write = (id) => {
    for (const link of links) if (link.dataset.account === id && names.get(id)) replace(link, nameText(names.get(id)));
  };
  for (const id of ids) write(id);
  try {
    for (const id of unknown) {
      names.set(id, await nameById(id, signal));
      write(id);
    }
  } catch {
    // The ids stay.
  }
}

async function nameById(id, signal) {
  try {
    return nameOf(await get(`/users/${id}`, {}, signal));
  } catch (error) {
    if (error.reason !== "USER_NOT_FOUND") throw error;
    return null;
  }
}

/**
 * The id that a person means by a text: an id as it is, or a username or e-mail address in whatever case. Throws an
 * `ApiError` for the field `name` where no account has it.
 */
export async function accountId(text, name) {
  if (text === "" || isId(text)) return text.toLowerCase();
  const isMeant = (given) => given?.toLowerCase() === text.toLowerCase();
  let found;
  for (let page = 1, pages = 1; !found && page <= pages; page += 1) {
    const answer = await get("/admin/users", { search: text, size: 100, page });
    ({ pages } = answer);
    found = answer.items.find(({ username, email }) => isMeant(username) || isMeant(email));
  }
  if (!found) throw new ApiError({ status: 422, fields: { [name]: texts.admin.no_account } });
  names.set(found.id, nameOf(found));
  return found.id;
}
