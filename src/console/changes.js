// Following the changes of one's own files, so that a list shows what happened to them in other tabs and programs.

import { ApiError, getTagged } from "./api.js";

/** Seconds for which the service may wait for a change, and most changes of an answer. */
const WAIT = 30;
const LIMIT = 1000;
/** Milliseconds between the beginnings of two requests, at least, and at most while they fail. */
const PACE = 5000;
const LONGEST_PACE = 60_000;
/** In place of a cursor: nothing but the cursor of this moment. */
const NOW = "now";

/**
 * The API's cursor up to which changes are known, and whether a list may lack some of them. The first one is asked for
 * together with the list, so the list may lack what changed between them. It is looked at when the first wait ends.
 */
let cursor = NOW;
let isNews = true;
/** The time by `performance.now()` from which another request may be sent. */
let next = 0;

function beginAnew() {
  cursor = NOW;
  isNews = true;
}
addEventListener("person", () => {
  beginAnew();
  next = 0; // whatever limit was waited for was the former person's
});

/**
 * Calls `look()` whenever something has changed, until `signal` is aborted; what it throws means that it has to be
 * called again. One request at a time waits for changes, and only while the tab is visible.
 */
export async function followChanges(look, signal) {
  let request = null;
  const stop = () => request?.abort();
  signal.addEventListener("abort", stop);
  document.addEventListener("visibilitychange", () => document.hidden && stop(), { signal });
  for (let failures = 0; ; ) {
    await untilDue(signal);
    if (signal.aborted) return;
    request = new AbortController();
    next = performance.now() + PACE;
    try {
      await ask(look, request.signal);
      failures = 0;
    } catch (error) {
      if (error.name === "AbortError") continue;
      if (!(error instanceof ApiError)) throw error;
      failures += 1;
      await settle(error, failures, signal);
    }
  }
}

async function ask(look, signal) {
  const query = { after: cursor, limit: LIMIT, wait: cursor === NOW ? null : WAIT };
  const { answer, wait } = await getTagged("/changes", { query, signal, again: false });
  rest(wait * 1000);
  isNews ||= answer.changes.length > 0;
  if (isNews && !answer.more && cursor !== NOW) {
    await look();
    isNews = false;
  }
  cursor = answer.next;
}

/** Decides when to ask again after a failure. */
async function settle({ status, retryAt }, failures, signal) {
  if (status === 410) beginAnew();
  rest(Math.min(LONGEST_PACE, PACE * 2 ** failures));
  if (retryAt) rest(retryAt - Date.now());
  // The session has ended. The person is asked to sign in when they do something, and not before.
  if (status === 401) await new Promise((resolve) => { addEventListener("session", resolve, { once: true, signal }); });
}

/** Sends nothing for so many milliseconds. */
function rest(milliseconds) {
  next = Math.max(next, performance.now() + milliseconds);
}

/** Is done when the tab is visible and a request may be sent, or once `signal` is aborted. */
async function untilDue(signal) {
  while (!signal.aborted && (document.hidden || performance.now() < next)) {
    // Not one long wait: that would stand still while the computer sleeps.
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
}
