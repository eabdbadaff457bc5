// Everything that goes to the API but contents of files: the tokens, their renewal, and requests. Below: what it
// refuses, as sentences for people.
//
// The refresh token is kept in `sessionStorage`, for one tab, and also in `localStorage` where the person wants to stay
// signed in. The access token and what is known of the user are kept for the tab alone, so that a reload goes on with
// them. Whenever what is known of the signed-in user changes, there is an event `session`; before it another one,
// `person`, where it is another user or nobody: whoever keeps anything of a person drops it then.

import { announce, askForSession, endForAll, inTurn, isNewest, isSamePerson, isSameSession, listen, sessionOf,
  setNewest, settle } from "./tabs.js";
import { texts } from "./texts.js";

/**
 * What the service offers and takes in its present settings, which it writes into the page: `{ registration,
 * passwordResets, emailConfirmation, publicList, types, spellings, fileBytes, trashDays, userBytes, userFiles,
 * provider }`. That is: whether people may make accounts of their own and ask for links to new passwords, must confirm
 * addresses, and see what others have published, the media types of files, all names under which files of these types
 * may be sent, the most bytes of a file, for how many days deleted files can be restored, the most bytes and files of
 * an account that has no limits of its own, and the OpenID provider, `{ name, registration, leads }` or `null`: what
 * people know it as, whether it makes accounts, and whether passwords are for administrators only.
 */
export const service = JSON.parse(document.getElementById("service").textContent);

const BASE = "/api/v1";
const REFRESH_TOKEN = "cloakroom.refresh_token";
const ACCESS = "cloakroom.access";
const API_KEY = "cloakroom.api_key";
/** What a tab keeps while its person is at the OpenID provider, see `identity.js`. */
export const ROUND_TRIP = "cloakroom.round_trip";
/** Milliseconds after which a request without an upload is given up. */
const TIMEOUT = 60_000;
/** An access token is renewed this many milliseconds before it expires. */
const MARGIN = 15_000;
const KEY_REASONS = ["API_KEY_REQUIRED", "EXPORT_API_KEY_REQUIRED", "INVALID_API_KEY"];
const ENDED = "SESSION_LOST";
/** Statuses that pass by themselves, and the seconds until the next try where the service does not name them. */
const PASSING = [429, 502, 503, 504];
const WAIT = 5;

let access = null;
let expiresAt = 0;
let user = null;

/** A function that does `work` once for all who call it meanwhile. */
export function shared(work) {
  let running = null;
  return (...given) => (running ??= work(...given).finally(() => { running = null; }));
}

/** Who is asked where a request cannot go on by itself; each answers whether to send again. */
const ask = { signIn: async () => false, apiKey: async (_error) => false };
export function whenNeeded({ signIn, apiKey }) {
  Object.assign(ask, { signIn: shared(signIn), apiKey: shared(apiKey) });
}

const refreshToken = () => sessionStorage.getItem(REFRESH_TOKEN);
const keptToken = () => localStorage.getItem(REFRESH_TOKEN);
/** Whether the browser goes on with the session of this tab after it was closed. */
export const isKept = () => isSameSession(keptToken(), refreshToken());

listen({ token: refreshToken, give, take: keep, end: drop, endToo });

/** Whether this tab has a session, which may have ended, or can go on with the one that is kept. */
export const hasSession = () => (refreshToken() ?? keptToken()) !== null;
/** The id of this tab's session, if it has one. */
export const sessionId = () => refreshToken() && sessionOf(refreshToken());
/** The signed-in user, a full User of the API, or `null`. */
export const currentUser = () => user;
export const isAdmin = () => user?.role === "admin";
/** Takes over what the API answered about the signed-in user, for what the frame shows of it. */
export function setCurrentUser(answer) {
  const isAnother = user?.id !== answer?.id;
  user = answer;
  if (access) sessionStorage.setItem(ACCESS, JSON.stringify({ token: access, expiresAt, user }));
  if (isAnother) dispatchEvent(new Event("person"));
  dispatchEvent(new Event("session"));
}

/** Begins a session with the API's token response; `isToStay` says whether the browser keeps it when it is closed. */
export function beginSession(answer, isToStay = false) {
  if (isKept()) localStorage.removeItem(REFRESH_TOKEN);
  if (isToStay) localStorage.setItem(REFRESH_TOKEN, answer.refresh_token);
  setNewest(answer.refresh_token);
  keep(answer);
}

function keep(answer) {
  sessionStorage.setItem(REFRESH_TOKEN, answer.refresh_token);
  // A tab that slept hears of old tokens before it hears of the newest.
  if (isKept() && isNewest(answer.refresh_token)) localStorage.setItem(REFRESH_TOKEN, answer.refresh_token);
  if (answer.api_key) setApiKey(answer.api_key);
  access = answer.access_token;
  expiresAt = Date.now() + answer.expires_in * 1000;
  settle(answer.refresh_token);
  setCurrentUser(answer.user);
}

/** The session for another tab of the same browser, with the API key, which the person would have to type again. */
function give() {
  const expires_in = (expiresAt - Date.now()) / 1000;
  return access && { refresh_token: refreshToken(), access_token: access, expires_in, user, api_key: apiKey() };
}

/**
 * Drops the tokens of this tab, and of all tabs of the same person. They show the page for signing in then. Answers
 * whether no other tab had a newer token, with which the session may live on at the service.
 */
export function forget() {
  const token = refreshToken();
  const hadNewest = !token || isNewest(token);
  if (token) endForAll(token);
  if (isSamePerson(keptToken(), token)) localStorage.removeItem(REFRESH_TOKEN);
  drop();
  return hadNewest;
}

/** Ends this tab's session, because its person has signed out of another one. The service is told if it can be. */
function endToo() {
  if (access) send("POST", "/auth/logout", { query: { scope: "local" } }, access).catch(() => {});
  forget();
}

/** The API key goes too: it is what one person typed, and the next may not have it. */
function drop() {
  // Where nobody is known yet, the person may just be back from the provider.
  if (user) sessionStorage.removeItem(ROUND_TRIP);
  if (isKept()) localStorage.removeItem(REFRESH_TOKEN);
  for (const name of [REFRESH_TOKEN, ACCESS, API_KEY]) sessionStorage.removeItem(name);
  access = null;
  settle(null);
  setCurrentUser(null);
}

/**
 * Goes on with the session that this tab had before it was loaded, or else, unless it `isAlone`, with that of another
 * tab or the one that is kept; answers whether there is one.
 */
export async function resumeSession({ isAlone = false } = {}) {
  const own = refreshToken();
  if (own && goOn(own)) return true;
  if (own || !isAlone) await askForSession(own, keptToken());
  const token = refreshToken() ?? (isAlone ? null : keptToken());
  if (!token) {
    setCurrentUser(null);
    return false;
  }
  sessionStorage.setItem(REFRESH_TOKEN, token);
  try {
    await renew();
    return true;
  } catch (error) {
    if (error.reason !== ENDED) throw error;
    drop();
    return own ? resumeSession({ isAlone }) : false;
  }
}

/** Goes on with the access token that this tab had before it was loaded anew; answers whether it is still good. */
function goOn(own) {
  const kept = JSON.parse(sessionStorage.getItem(ACCESS));
  if (!kept || !isSameSession(kept.token, own) || !isNewest(own) || Date.now() > kept.expiresAt - MARGIN) return false;
  ({ token: access, expiresAt } = kept);
  settle(own);
  setCurrentUser(kept.user);
  return true;
}

/** Ends this tab's session, at the service too; answers whether the service was told. */
export async function signOut() {
  const told = post("/auth/logout", undefined, { query: { scope: "local" }, again: false });
  const failure = await told.then(() => null, (error) => error);
  const hadNewest = forget();
  return !failure || (isEnded(failure) && hadNewest);
}

/**
 * Sends a request and answers its JSON, or `null` where there is none. Throws an `ApiError`.
 *
 * `body` is sent as JSON; `query` leaves out what is `null`, `undefined` or empty; `anonymous` sends no token; `signal`
 * gives the request up; `tag` is the entity tag that what is changed must still have. With `tagged` the answer is
 * `{ answer, tag, wait }`, where `wait` are the seconds until the next request, if the service names them, or else 0.
 * An expired access token is renewed and the request sent again; a missing API key is asked for, and so is signing in
 * after a lost session, unless `again` is false.
 */
const request = (method, path, options = {}) => authorized(options, (token) => send(method, path, options, token));

export const get = (path, query, signal) => request("GET", path, { query, signal });
export const getTagged = (path, options) => request("GET", path, { ...options, tagged: true });
export const post = (path, body, options) => request("POST", path, { body, ...options });
export const put = (path, body, options) => request("PUT", path, { body, ...options });
export const del = (path, options) => request("DELETE", path, options);

/** Whether the service refuses a token, and not only the lack of an API key. */
const isEnded = ({ status, reason }) => status === 401 && !KEY_REASONS.includes(reason);

/**
 * Does `attempt(token)` with a good token, again with the next one where the service refuses it. What one person began
 * is given up, as by a signal, where another one has signed in or nobody is signed in any more.
 */
export async function authorized(/** @type {any} */ { anonymous = false, again = true, signal }, attempt) {
  const owner = user?.id;
  const checkOwner = () => {
    if (!anonymous && user?.id !== owner) throw new DOMException("Another person is signed in.", "AbortError");
  };
  let isRenewed = false;
  for (let tries = 1; ; tries += 1) {
    let token = null;
    try {
      if (!anonymous && !hasAccess()) await renew();
      if (!anonymous) token = access;
      checkOwner();
      const answer = await withKey(() => attempt(token));
      checkOwner();
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      checkOwner();
      if (anonymous || tries === 5 || !isEnded(error)) throw error;
      if (error.reason === ENDED || isRenewed) {
        // The page stays as it is while the person is asked to sign in again, unless it is left.
        if (!again || !user || !(await ask.signIn())) throw error;
      } else {
        isRenewed = true;
        if (token === access) expiresAt = 0;
      }
    }
  }
}

/** Renews both tokens, once for all requests that wait for it. */
const renew = shared(() => withKey(renewInTurn));

const hasAccess = () => access && Date.now() <= expiresAt - MARGIN;

/** One tab renews at a time, so that each goes on with what the one before it has got. */
async function renewInTurn() {
  if (!refreshToken()) throw new ApiError({ status: 401, reason: ENDED });
  try {
    await inTurn(refreshToken(), async () => {
      if (hasAccess()) return;
      await catchUp(refreshToken());
      if (!hasAccess()) await exchange();
    });
  } catch (error) {
    throw error.name === "TimeoutError" ? offlineError(error) : error;
  }
}

/** Gets the newest token from where it is kept or from another tab, where that of this tab, which slept, is old. */
async function catchUp(token) {
  if (!token || isNewest(token)) return;
  if (isKept()) sessionStorage.setItem(REFRESH_TOKEN, keptToken());
  else await askForSession(token);
}

/** Uses the refresh token, unless it is an old one: the tab that has the newest is closed then, or sleeps. */
async function exchange() {
  const from = refreshToken();
  if (!from || !isNewest(from)) throw new ApiError({ status: 401, reason: ENDED });
  try {
    const answer = await send("POST", "/auth/refresh", { body: { refresh_token: from } }, null);
    if (refreshToken() !== from) return;
    setNewest(answer.refresh_token);
    keep(answer);
    announce(from, answer);
  } catch (error) {
    if (refreshToken() !== from) return;
    if (!isEnded(error)) throw error;
    throw new ApiError({ status: 401, reason: ENDED });
  }
}

/** Does `attempt()`, again with another API key where the service asks for one and the person gives it. */
async function withKey(attempt) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!KEY_REASONS.includes(error.reason) || !(await ask.apiKey(error))) throw error;
    }
  }
}

const apiKey = () => sessionStorage.getItem(API_KEY);
/** Keeps the API key for this tab; requests carry it from now on. */
export const setApiKey = (key) => sessionStorage.setItem(API_KEY, key);

export function headersFor(token) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (apiKey()) headers["X-API-Key"] = apiKey();
  return headers;
}

export function addressOf(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== "");
  const text = new URLSearchParams(given).toString();
  return BASE + path + (text && `?${text}`);
}

async function send(method, path, /** @type {any} */ { body, query, signal, tag, tagged }, token) {
  const headers = headersFor(token);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (tag) headers["If-Match"] = tag;
  // Made out here, and `Headers` checks them: a request that cannot be sent says nothing about the service.
  /** @type {RequestInit} */
  const options = {
    method, headers: new Headers(headers),
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT), ...(signal ? [signal] : [])]),
    cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
  };
  let response;
  let text;
  try {
    response = await fetch(addressOf(path, query), options);
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw offlineError(error);
  }
  if (!response.ok) throw errorOf(response.status, (name) => response.headers.get(name), text);
  const answer = text ? JSON.parse(text) : null;
  if (!tagged) return answer;
  // Proxies that compress mark an entity tag as that of another form, which no `If-Match` may name.
  const current = response.headers.get("ETag")?.replace(/^W\/|-+[a-z]+(?="$)/g, "");
  return { answer, tag: current, wait: Number(response.headers.get("Retry-After")) };
}

/**
 * A refusal of the API, or no answer at all (`status` 0).
 *
 * `message` is the sentence to show, `reason` the API's stable word, `fields` the sentences of single fields by the
 * API's names, `retryAt` the time in milliseconds from which a repetition may work, or `null`, and `limit` how many
 * such requests a minute the service takes, or 0 where it does not say so.
 */
export class ApiError extends Error {
  constructor({ status, reason = "", detail = "", hint = "", fields = {}, wait = null, limit = 0 }) {
    super(sentenceOf(status, reason, detail, hint, fields));
    this.name = "ApiError";
    this.status = status;
    this.reason = reason;
    this.fields = fields;
    this.limit = limit;
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
    limit: Number(header("X-RateLimit-Limit")),
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
export const offlineError = (cause) =>
  new ApiError({ status: 0, reason: cause?.name === "TimeoutError" ? "NO_ANSWER" : "OFFLINE", wait: WAIT });

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
