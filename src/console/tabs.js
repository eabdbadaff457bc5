// What the tabs of a browser know of each other's sessions.
//
// A tab that is opened while another one has a session gets that session from it. A tab that was duplicated begins with
// the same refresh token as the other, and so does one that the browser brings back from earlier. The service takes a
// token that was replaced a while ago for a stolen one, and ends the session. So `localStorage` names the newest token
// of each session by its id, which is of no use to anybody else, and a tab whose token is an older one, because it
// slept, has to get the newest from another tab before it renews.

const NEWEST = "cloakroom.newest.";
/** The id of the session that was used last. */
const LAST = "cloakroom.last";
/** Before the id of a session: the name of a lock that each tab holds, with others, while it has that session. */
const OPEN = "cloakroom.open.";
/** Milliseconds in which a tab that is awake gives its session to another one. Without locks there may be none. */
const PATIENCE = 2000;
const PATIENCE_WITHOUT_LOCKS = 500;
/** Milliseconds after which a tab waits no more for its turn, which is over sooner unless the other tab hangs. */
const LONGEST_TURN = 90_000;

const channel = new BroadcastChannel("cloakroom.session");
/** The id of the session that this tab has asked for, until it has one; and what to call then. */
let wanted = null;
let arrived = /** @type {Function} */ (() => {});
/** Gives the lock of this tab's session back. */
let release = /** @type {Function} */ (() => {});

/**
 * What a token says of itself: `jti`, its id; `sid` and `sub`, those of its session and of its person; and `exp`, the
 * second when it expires.
 */
const claimsOf = (token) => JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
export const sessionOf = (token) => claimsOf(token).sid;
export const isSameSession = (one, other) => Boolean(one && other) && sessionOf(one) === sessionOf(other);
const personOf = (token) => claimsOf(token).sub;
export const isSamePerson = (one, other) => Boolean(one && other) && personOf(one) === personOf(other);

const newestOf = (session) => localStorage.getItem(NEWEST + session);
const isEnded = (session) => Boolean(newestOf(session)?.endsWith("ended"));

/** Whether no tab of this browser has a newer token of the same session, nor has ended the session. */
export function isNewest(token) {
  const known = newestOf(sessionOf(token));
  return known === null || known.endsWith(claimsOf(token).jti);
}

/** Names a token as the newest of its session, and forgets sessions whose tokens have all expired. */
export function setNewest(token) {
  for (const name of Object.keys(localStorage)) {
    const isOver = name.startsWith(NEWEST) && parseInt(localStorage.getItem(name), 10) * 1000 < Date.now();
    if (isOver) localStorage.removeItem(name);
  }
  const { exp, jti } = claimsOf(token);
  localStorage.setItem(NEWEST + sessionOf(token), `${exp} ${jti}`);
}

/**
 * Says that a session has ended: no token of it is the newest any more, also for tabs that hear nothing now. That is
 * kept until the newest has expired, which another tab may have.
 */
export function endForAll(token) {
  const session = sessionOf(token);
  const exp = Math.max(claimsOf(token).exp, parseInt(newestOf(session) ?? "0", 10));
  localStorage.setItem(NEWEST + session, `${exp} ended`);
  channel.postMessage({ session, person: personOf(token), isEnded: true });
}

/** Tells the other tabs that `from` has been replaced, by the API's token response. */
export function announce(from, answer) {
  channel.postMessage({ session: sessionOf(from), from, answer });
}

/** This tab has the session of `token` from now on, or none. */
export function settle(token) {
  const before = release;
  if (token) {
    const over = new Promise((resolve) => { release = resolve; });
    navigator.locks?.request(OPEN + sessionOf(token), { mode: "shared" }, () => over);
    if (!document.hidden) localStorage.setItem(LAST, sessionOf(token));
  }
  before();
  wanted = null;
  arrived();
}

/**
 * Listens to the other tabs: `token()` is the refresh token of this tab or `null`; `give()` answers its session for
 * another tab, like the API's token response, or `null`; `take(answer)` takes such a session over; `end()` is called
 * where the session has ended, at the latest when somebody looks at the tab again; `endToo()` where another session of
 * the same person has, because whoever signs out means all tabs.
 */
export function listen({ token, give, take, end, endToo }) {
  channel.onmessage = ({ data: { session, person, isAsked, from, answer, ...data } }) => {
    const own = token();
    if (data.isEnded && own && person === personOf(own) && session !== sessionOf(own)) return endToo();
    if (session !== (own ? sessionOf(own) : wanted)) return;
    if (data.isEnded) end();
    else if (isAsked && own && isNewest(own) && give()) channel.postMessage({ session, answer: give() });
    else if (answer && (from || wanted) && (from === own || isNewest(answer.refresh_token))) take(answer);
  };
  const use = () => {
    if (document.hidden || !token()) return;
    if (isEnded(sessionOf(token()))) end();
    else localStorage.setItem(LAST, sessionOf(token()));
  };
  for (const type of ["focus", "visibilitychange"]) addEventListener(type, use);
  addEventListener("pagehide", () => release());
}

/** The ids of the sessions that open tabs have; in a browser without locks of those that they may have. */
async function openSessions() {
  if (navigator.locks) {
    const { held } = await navigator.locks.query();
    return held.filter(({ name }) => name.startsWith(OPEN)).map(({ name }) => name.slice(OPEN.length));
  }
  const known = Object.keys(localStorage).filter((name) => name.startsWith(NEWEST));
  return known.map((name) => name.slice(NEWEST.length)).filter((session) => !isEnded(session));
}

/**
 * Asks the other tabs for a session: that of `token`, or without one that was used last, or else that of `kept` or, if
 * there is none, any. Is done when `listen` has passed it on, or nobody has it. Nothing is waited for where no such tab
 * is open; without locks nobody knows, and a tab with the newest token renews it rather than waits.
 */
export async function askForSession(token, kept) {
  const open = await openSessions();
  const wishes = token ? [sessionOf(token)] : [localStorage.getItem(LAST), ...(kept ? [sessionOf(kept)] : open)];
  const session = wishes.find((each) => open.includes(each));
  if (!session || (token && isNewest(token) && !navigator.locks)) return;
  wanted = session;
  channel.postMessage({ session, isAsked: true });
  await new Promise((resolve) => {
    arrived = resolve;
    setTimeout(resolve, navigator.locks ? PATIENCE : PATIENCE_WITHOUT_LOCKS);
  });
  wanted = null; // what comes later would come to whoever signs in here meanwhile
}

/**
 * Does `work` while no other tab does so for the same session. Browsers have locks over HTTPS only; without them two
 * tabs may renew at once, which the service forgives.
 */
export function inTurn(token, work) {
  if (!navigator.locks) return work();
  const signal = AbortSignal.timeout(LONGEST_TURN);
  return navigator.locks.request(`cloakroom.renewal.${sessionOf(token)}`, { signal }, work);
}
