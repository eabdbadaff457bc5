// What the pages of one's own account share: their navigation, a field, and dialogs of what is shown only once.

import { del, service } from "./api.js";
import { button, pageHead } from "./controls.js";
import { dialog } from "./dialogs.js";
import { el, focusOn } from "./dom.js";
import { formatBytes, formatNumber } from "./format.js";
import { notify } from "./frame.js";
import { account as t } from "./texts/account.js";

/** What lets the OpenID provider take the place of a password, where there is one. */
const proof = service.provider && (await import("./proof.js"));

const PAGES = [
  ["/console/account", t.profile.title],
  ["/console/account/password", t.password.title],
  ...(proof ? [["/console/account/identity", t.identity.title]] : []),
  ["/console/account/second-factor", t.second_factor.title],
  ["/console/account/sessions", t.sessions.title],
  ["/console/account/tokens", t.tokens.title],
  ["/console/account/leave", t.leave.title],
];

/** The field for the password without which the service changes nothing that gives somebody else the account. */
export const CURRENT_PASSWORD = { name: "current_password", label: t.current_password, type: "password", required: true,
  autocomplete: "current-password", reasons: ["WRONG_PASSWORD"] };

/** How much of what an account may have it has. */
export const usage = (stats) => t.profile.usage({
  bytes: formatBytes(stats.total_storage_used), of_bytes: formatBytes(stats.storage_quota),
  files: formatNumber(stats.total_uploads), of_files: formatNumber(stats.file_quota),
});

/** The fields of a form that asks for the password, see `proof.js`; `purpose` tells the forms apart. */
export const provable = (purpose, fields) => proof?.provable(purpose, fields) ?? fields;
/** Whether the person has just come back from the provider, to go on with the form of that purpose. */
export const isBack = (purpose) => Boolean(proof?.isBack(purpose));

/** One of the pages: the navigation among them, the head that `pageHead` makes, and the contents. */
export function accountPage(title, head, ...children) {
  const here = location.pathname.replace(/\/+$/, "");
  const links = PAGES.map(([href, label]) => el("a", { href, "aria-current": href === here && "page" }, label));
  const nav = el("nav", { class: "subnav", "aria-label": t.navigation }, links);
  return el("div", {}, nav, pageHead(title, head), children);
}

/** Ends something, by its path in the API. Answers what there is to say: `done`, or that it had ended already. */
export const endAt = (path, done) => del(path).then(() => done, (error) => {
  if (!error.reason?.endsWith("_NOT_FOUND")) throw error;
  return error.message;
});

/** Says what was done. Where the page `isShown` anew, the button of it is gone, and the focus goes to the heading. */
export function sayDone(text, isShown) {
  if (isShown) focusOn();
  notify(text);
}

/**
 * Shows what no later answer of the API contains. The dialog closes by its button only, whose text is `label`, and the
 * browser asks before the page is closed meanwhile. Answers whether the person has pressed the button: the dialog also
 * closes where they are signed out.
 */
export async function showOnce(title, body, label) {
  const warn = (event) => event.preventDefault();
  addEventListener("beforeunload", warn);
  const done = button(label, { act: () => box.close(true) });
  const box = dialog(title, [body, el("div", { class: "dialog-actions" }, done)], { keep: true, wide: true });
  const isSeen = await box.result;
  removeEventListener("beforeunload", warn);
  return Boolean(isSeen);
}
