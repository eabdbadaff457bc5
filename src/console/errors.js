// What the API refuses, as sentences for people.

import { texts } from "./texts.js";

/** Statuses that pass by themselves, and the seconds until the next try where the service does not name them. */
const PASSING = [429, 502, 503, 504];
const WAIT = 5;

/**
 * A refusal of the API, or no answer at all (`status` 0).
 *
 * `message` is the sentence to show, `reason` the API's stable word, `fields` the sentences of single fields by the
 * API's names, and `retryAt` the time in milliseconds from which a repetition may work, or `null`.
 */
export class ApiError extends Error {
  constructor({ status, reason = "", detail = "", hint = "", fields = {}, wait = null }) {
    super(sentenceOf(status, reason, detail, hint, fields));
    this.name = "ApiError";
    this.status = status;
    this.reason = reason;
    this.hint = hint;
    this.fields = fields;
    this.retryAt = wait == null ? null : Date.now() + wait * 1000;
  }
}

/** The error of a response, whose body has either of the two shapes that the service can be set to. */
export function errorOf(status, header, body) {
  const wait = Number(header("Retry-After")) || (PASSING.includes(status) ? WAIT : null);
  let answer = {};
  try {
    answer = JSON.parse(body) ?? {};
  } catch {
    // A proxy's page: the status says enough.
  }
  const envelope = answer.error;
  const detail = envelope ? envelope.message : answer.detail;
  const list = (envelope ? envelope.details : answer.detail) ?? [];
  return new ApiError({
    status,
    reason: (envelope ?? answer).reason ?? answer.error_code,
    detail: typeof detail === "string" ? detail : "",
    hint: answer.hint ?? (typeof list.hint === "string" ? list.hint : ""),
    fields: fieldsOf(Array.isArray(list) ? list : []),
    wait,
  });
}

function fieldsOf(list) {
  const fields = {};
  for (const { loc = [], msg } of list) {
    const name = loc.slice(1).find((part) => typeof part === "string") ?? loc[0];
    if (name && msg) fields[name] = `${fields[name] ? `${fields[name]} ` : ""}${msg.replace(/\.?$/, ".")}`;
  }
  return fields;
}

/** The error of a request that got no answer. */
export function offlineError(cause) {
  const isLate = cause?.name === "TimeoutError";
  return new ApiError({ status: 0, reason: isLate ? "NO_ANSWER" : "OFFLINE", wait: WAIT });
}

/** What `import()` of a part of a page answers. It fails where the service is away, or is another version by now. */
export const loaded = (module) => module.catch(() => { throw new ApiError({ status: 0, reason: "UNLOADABLE" }); });

function sentenceOf(status, reason, detail, hint, fields) {
  const known = texts.errors[reason] ?? (detail ? "" : texts.errors[status]);
  if (known) return known;
  const ofFields = Object.values(fields).join(" ");
  if (status === 422 && ofFields) return ofFields;
  // Hints that name endpoints are for programs; the others are for people.
  const shown = /\/api\/v1|`[a-z_]+`:|Authorization/.test(hint) ? "" : hint.replaceAll("`", "");
  const sentence = detail ? detail.replace(/\.?$/, ".") : texts.errors.unknown;
  return shown ? `${sentence} ${shown}` : sentence;
}
