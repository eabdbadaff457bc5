// The uploads and downloads of this tab. They belong to the tab and not to a page, so they go on while other pages are
// shown, and end with the session.
//
// A transfer is `{ kind, name, size, moved, state, error, file, cancel(), again() }`: `kind` is `upload` or `download`;
// `moved` of its `size` bytes have been sent or received; `state` is `waiting`, `running`, `done` or `failed`; `error`
// is the sentence that says why; `file` the API's metadata where they are known; `again` is there for what can be tried
// again; `isHidden` leaves it out of the list that is shown.

/** All transfers, oldest first, finished ones too until they are dismissed. */
export const transfers = [];
const listeners = new Set();

/** Calls `listener(transfer)` whenever one has changed, and `listener()` when the list has. */
export function watchTransfers(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener("abort", () => listeners.delete(listener));
}

/**
 * Tells all listeners that a transfer, or without one the list, has changed. One that fails is reported, and hinders
 * neither the others nor the transfer.
 */
export function transferChanged(transfer) {
  for (const listener of listeners) {
    try {
      listener(transfer);
    } catch (error) {
      reportError(error);
    }
  }
}

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
  for (const transfer of given) if (isActive(transfer)) transfer.cancel();
  transferChanged();
}

/** What one person began is never sent in the name of another. */
addEventListener("person", () => dismiss([...transfers]));

/** The browser asks before it closes the tab with unfinished transfers. */
addEventListener("beforeunload", (event) => {
  if (transfers.some(isActive)) event.preventDefault();
});
