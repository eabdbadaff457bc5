// The uploads and downloads of this tab, and what else is done with many files. They belong to the tab and not to a
// page, so they go on while other pages are shown, and end with the session.
//
// A transfer is `{ kind, name, size, moved, state, status, error, file, older, cancel(), again() }`: `kind` is
// `upload`, or one of `ACTIONS`; `moved` of its `size` bytes have been sent or received, or files dealt with; `state`
// is `waiting`, `running`, `done` or `failed`, which `status` may say in other words; `error` are the sentences that
// say why; `isBroken` says that what waits does so for the network; `file` the API's metadata where they are known,
// `older` those of another file of the same name; `again` is there for what can be tried again; `isHidden` leaves it
// out of the list that is shown.

/** Longest wait in milliseconds between attempts to reach the service. */
const MAX_WAIT = 60_000;
/**
 * Milliseconds of rest after a limit was met, at least. What the person does meanwhile is counted by the service too,
 * and would find nothing left if everything were used up again as soon as it can be.
 */
const REST = 5000;
/** Refusals that end by themselves. 0 is no answer, 502 a proxy's whose service is being restarted. */
const TEMPORARY = [0, 429, 502, 503, 504];

/** All transfers, oldest first, finished ones too until they are dismissed. */
export const transfers = [];
/** Tells everybody, by an event `transfers`, that one of them, its `detail`, or without one their list has changed. */
export const transferChanged = (detail = null) => dispatchEvent(new CustomEvent("transfers", { detail }));

export const isActive = ({ state }) => state === "waiting" || state === "running";

export function addTransfers(added) {
  transfers.push(...added);
  transferChanged();
}

/** Takes transfers out of the list; those that are not finished are given up. */
export function dismiss(which) {
  const given = new Set(which);
  const kept = transfers.filter((transfer) => !given.has(transfer));
  transfers.splice(0, transfers.length, ...kept);
  for (const transfer of given) if (transfer.state !== "done") transfer.cancel?.();
  transferChanged();
}

export const isTemporary = ({ status }) => TEMPORARY.includes(status);

/**
 * Waits after a temporary refusal: as long as the service says; where it does not answer, longer the more `failures`
 * there were in a row, or until there is a network. The abortion of `signal` ends it too; `begin(until)` is told the
 * time in milliseconds.
 */
export function waitOut(error, { failures, signal, begin = (_until) => {} }) {
  const isLimit = error.status === 429;
  const backOff = isLimit ? REST : Math.min(MAX_WAIT, 2500 * 2 ** failures);
  const until = Math.max(error.retryAt ?? 0, Date.now() + backOff);
  begin(until);
  return new Promise((resolve) => {
    const end = () => {
      clearInterval(timer);
      removeEventListener("online", end);
      resolve();
    };
    // Not one long timer: that would stand still while the computer sleeps.
    const timer = setInterval(() => Date.now() >= until && end(), 500);
    if (!isLimit) addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

/** What one person began is never sent in the name of another. By a link files are sent in nobody's. */
addEventListener("person", () => dismiss(transfers.filter(({ to }) => !to?.isOpen)));

/** The browser asks before it closes the tab with unfinished transfers. */
addEventListener("beforeunload", (event) => {
  if (transfers.some(isActive)) event.preventDefault();
});
