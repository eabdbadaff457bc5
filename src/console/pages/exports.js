// Files of all accounts for other programs.

import { saveAttachment } from "../contents.js";
import { buttonLink, pageHead, section } from "../controls.js";
import { el } from "../dom.js";
import { form } from "../forms.js";
import { formatBytes } from "../format.js";
import { notify } from "../frame.js";
import { admin } from "../texts/admin.js";

const t = admin.exports;

export function show() {
  const users = form({
    fields: [{ name: "email", label: t.email, hint: t.email_hint, maxlength: 255, autocomplete: "off" }],
    label: t.download,
    busy: t.preparing,
    submit: async (filter) => {
      const saved = await saveAttachment("/users/export", filter);
      notify(t.saved({ ...saved, size: formatBytes(saved.size) }));
    },
  });
  return el("div", {}, pageHead(t.title),
    section(t.users, { lead: t.users_lead }, users.element),
    section(t.audit, { lead: t.audit_lead }, buttonLink(t.audit_link, "/console/audit")));
}
