// What the tabs of a browser know of each other's sessions.
//
// A tab that was duplicated begins with the same refresh token as the other, and so does one that the browser brings
// back from earlier. The service takes a token that was replaced a while ago for a stolen one, and ends the session. So
// `localStorage` names the newest token of each session by its id, which is of no use to anybody else, and a tab whose
// token is an older one, because it slept, has to get the newest from another tab before it renews.

const NEWEST = "cloakroom.newest.";
/** Milliseconds in which a tab that is awake says the newest token. */
const PATIENCE = 1000;
/** Milliseconds after which a tab waits no more for its turn, which is over sooner unless the other tab hangs. */
const LONGEST_TURN = 90_000;

const channel = new BroadcastChannel("cloakroom.session");
let arrived = () => {};

/** What a token says of itself: `jti`, its id; `sid`, that of its session; and `exp`, the second when it expires. */
const claimsOf = (token) => JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
const sessionOf = (token) => claimsOf(token).sid;

/** Whether no tab of this browser has a newer token of the same session, nor has ended the session. */
export function isNewest(token) {
  const known = localStorage.getItem(NEWEST + sessionOf(token));
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
  const name = NEWEST + sessionOf(token);
  const exp = Math.max(claimsOf(token).exp, parseInt(localStorage.getItem(name) ?? 0, 10));
  localStorage.setItem(name, `${exp} ended`);
  channel.postMessage({ session: sessionOf(token), isEnded: true });
}

/** Tells the other tabs that `from` has been replaced, by the API's token response. */
export function announce(from, answer) {
  channel.postMessage({ session: sessionOf(from), from, answer });
}

/**
 * Listens to tabs with the same session: `token()` is that of this tab or `null`, `renew(answer)` takes over a token
 * response, `replace(token)` a refresh token without one, and `end()` is called where the session has ended.
 */
export function listen({ token, renew, replace, end }) {
  channel.onmessage = ({ data }) => {
    const own = token();
    if (!own || data.session !== sessionOf(own)) return;
    if (data.isEnded) end();
    else if (data.isAsked && isNewest(own)) channel.postMessage({ session: data.session, newest: own });
    else if (data.answer && (data.from === own || isNewest(data.answer.refresh_token))) renew(data.answer);
    else if (data.newest && isNewest(data.newest)) replace(data.newest);
    if (token() !== own) arrived();
  };
}

/** Asks the other tabs for the newest token of a session; is done when `listen` has passed it on, or nobody has it. */
export function askForNewest(token) {
  channel.postMessage({ session: sessionOf(token), isAsked: true });
  return new Promise((resolve) => {
    arrived = resolve;
    setTimeout(resolve, PATIENCE);
  });
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
