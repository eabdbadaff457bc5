// The token of a link in a mail. Gateways that examine mails take the fragment away from a link, or encode, rewrite or
// double it, and programs that show mails take what follows a link for a part of it. So the token is found in whatever
// is left of the address, and where there is none, the person pastes it.

import { ApiError } from "./api.js";
import { form } from "./forms.js";
import { texts } from "./texts.js";

/**
 * The token in a text, or `""`. It may be a part of a link, percent-encoded any number of times or quoted-printable
 * (RFC 2045, 6.7), broken into lines, or alone if it is long enough. Characters that no token ends with are left out.
 */
export function tokenIn(text) {
  const plain = text.replace(/%(?:25)*([0-7][\da-f])/gi, (_, code) => String.fromCharCode(parseInt(code, 16)))
    .replace(/(?<!token)=\s*\n/gi, "").replace(/=3D/g, "=");
  for (const paragraph of plain.split(/\n[\s>]*\n/)) {
    const line = paragraph.replace(/\n[\s>]*|[\s\u00ad\u200b]/g, "");
    // A signed token has three parts, a sealed one has one.
    const named = /token=["'<(*]*([\w-]+(?:\.[\w-]+){0,2})/i.exec(line);
    const alone = /^[^\w-]*(?=[\w.-]{40})([\w-]+(?:\.[\w-]+){0,2})[^\w-]*$/.exec(line);
    if (named ?? alone) return (named ?? alone)[1];
  }
  return "";
}

/** A form that asks for the token, for `found(token)`; `extra` are nodes beside its button. */
export const tokenForm = (found, extra) => form({
  fields: [{ name: "link", label: texts.mail_token.label, type: "textarea", required: true, autocomplete: "off",
    autocapitalize: "none", spellcheck: "false", "data-focus": "" }],
  label: texts.mail_token.submit,
  extra,
  submit: ({ link }) => {
    const token = tokenIn(link);
    if (!token) throw new ApiError({ status: 422, fields: { link: texts.mail_token.none } });
    found(token);
  },
}).element;
