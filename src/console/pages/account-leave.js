// Deleting one's own account.

import { CURRENT_PASSWORD, accountPage, provable } from "../account.js";
import { ApiError, forget, get, post } from "../api.js";
import { load, section } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { formatBytes, formatNumber } from "../format.js";
import { notify } from "../frame.js";
import { account } from "../texts/account.js";

const t = account.leave;

export function show({ leaving }) {
  const place = el("div", {});
  load(place, {
    signal: leaving,
    work: () => get("/users/me", {}, leaving),
    show: (user) => [losses(user), leaveForm(user)],
  });
  return accountPage(t.title, { lead: t.lead }, place);
}

/** What ends with the account. */
function losses({ stats: { total_uploads: files, total_storage_used: bytes } }) {
  const ofFiles = files ? t.files({ files: formatNumber(files), bytes: formatBytes(bytes) }) : t.no_files;
  const download = files > 0 && [". ", el("a", { href: "/console/files" }, t.download_first)];
  return section(t.loses, {}, el("ul", { class: "bullets" },
    el("li", {}, ofFiles, download), [t.links, t.access, t.data].map((text) => el("li", {}, text))));
}

/** Asks for the name of the account, so that nobody deletes another one than they mean, and for the password. */
function leaveForm({ username, email }) {
  const name = username ?? email;
  const made = form({
    fields: provable("leave", [
      { name: "confirmation", label: t.confirm({ name }), required: true, autocomplete: "off", autocapitalize: "none" },
      CURRENT_PASSWORD,
    ]),
    label: t.submit,
    busy: account.deleting,
    kind: "danger",
    submit: async ({ confirmation, ...proof }) => {
      const fields = { confirmation: t.confirm_wrong({ name }) };
      if (confirmation !== name) throw new ApiError({ status: 422, fields });
      try {
        await post("/users/me/delete", proof);
      } catch (error) {
        if (error.reason === "LAST_ADMIN") error.message = t.last_admin;
        throw error;
      }
      forget();
      notify(t.done);
    },
  });
  return section(t.sure, {}, made.element);
}
