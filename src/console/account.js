// What the pages of one's own account share: their navigation, and dialogs of what is shown only once.

import { button, pageHead, pagesNav } from "./controls.js";
import { dialog } from "./dialogs.js";
import { el } from "./dom.js";
import { formatBytes, formatNumber } from "./format.js";
import { account as t } from "./texts/account.js";

const PAGES = [
  { href: "/console/account", label: t.profile.entry },
  { href: "/console/account/password", label: t.password.entry },
  { href: "/console/account/second-factor", label: t.second_factor.entry },
  { href: "/console/account/sessions", label: t.sessions.entry },
  { href: "/console/account/tokens", label: t.tokens.entry },
  { href: "/console/account/leave", label: t.leave.entry },
];

/** How much of what an account may have it has. */
export const usage = (stats) => t.profile.usage({
  bytes: formatBytes(stats.total_storage_used), of_bytes: formatBytes(stats.storage_quota),
  files: formatNumber(stats.total_uploads), of_files: formatNumber(stats.file_quota),
});

/** One of the pages: the navigation among them, the head that `pageHead` makes, and the contents. */
export function accountPage(title, head, ...children) {
  return el("div", {}, pagesNav(t.navigation, PAGES), pageHead(title, head), children);
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
