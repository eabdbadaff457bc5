// What is done with one or several files: downloading, making public, deleting, restoring. One request follows another,
// because the service counts them; whatever takes long is one line in the list of transfers. When files were changed,
// there is an event `files`.
//
// A download is received by this page and then saved, so its token stays in a header. Browsers keep what is received
// on disk, so a file need not fit into memory.

import { ApiError, currentUser, del, get, loaded, post, put, service } from "./api.js";
import { download, save } from "./contents.js";
import { button } from "./controls.js";
import { confirmDialog } from "./dialogs.js";
import { el, isInField, nameText } from "./dom.js";
import { formatClock, formatNumber } from "./format.js";
import { notify, notifyError, takeAway } from "./frame.js";
import { texts } from "./texts.js";
import { addTransfers, dismiss, isTemporary, transferChanged, waitOut } from "./transfers.js";
import "./tray.js";

const t = texts.files.actions;
/** Milliseconds after which it is in the list of transfers. Most is done by then. */
const LISTED_AFTER = 800;

/** By names, which are those of their texts: `send(file, options)`, and `fits(file)` where it is not for all files. */
export const ACTIONS = {
  download: { drawing: "download", send: receive },
  link: { drawing: "link" }, // `file-links.js` makes them, and asks how
  publish: { send: ({ id }) => put(`/uploads/${id}`, { is_public: true }), fits: (file) => !file.is_public },
  hide: { send: ({ id }) => put(`/uploads/${id}`, { is_public: false }), fits: (file) => file.is_public },
  restore: { send: ({ id }) => post(`/uploads/${id}/restore`) },
  delete: { drawing: "trash", kind: "danger", send: (file) => remove(file) },
  purge: { drawing: "trash", kind: "danger", send: (file) => remove(file, { permanently: true }) },
};

/** A file that is gone already has been deleted. */
function remove({ id }, query) {
  return del(`/uploads/${id}`, { query }).catch((error) => {
    if (error.reason !== "FILE_NOT_FOUND") throw error;
  });
}

/** Whether a link may lead to one of some files, which it would not do any more once they are deleted. */
async function haveLinks(files) {
  const ids = new Set(files.map(({ id }) => id));
  const { links } = await get("/links").catch(() => ({ links: [...ids].map((id) => ({ file_id: id })) }));
  return links.some((link) => ids.has(link.file_id));
}

/** Downloads a file, and saves it under the name that is shown. One that breaks on the way does not stop the others. */
async function receive({ id, filename }, { signal, progress }) {
  let moved = 0;
  const options = { signal, progress: (bytes) => progress(moved = bytes) };
  const { contents } = await download(`/uploads/${id}/download`, options).catch((error) => {
    throw error.status === 0 && moved > 0 ? new ApiError({ status: 422, detail: t.broken }) : error;
  });
  save(contents, filename);
}

/**
 * Does one of `ACTIONS` with files, after a question if it has one, unless all of it can be undone, and calls `begun()`
 * when it begins. Answers, when it has ended, with how many files it was done. What fails is said here.
 */
export async function act(wanted, files, begun = () => {}) {
  if (wanted === "link") {
    const { share } = await loaded(import("./file-links.js"));
    return Number(await share(files));
  }
  const name = wanted === "delete" && service.trashDays === 0 ? "purge" : wanted;
  const { label, title, text } = t[name];
  const one = files.length === 1 && files[0];
  if (title && (name !== "delete" || await haveLinks(files))) {
    const question = el("span", {}, one && nameText(one.filename), text({ one, service }));
    const options = { label, danger: ACTIONS[name].kind === "danger", act() {} };
    if (!(await confirmDialog(title(one ? t.one : whatOf(files)), question, options))) return 0;
  }
  begun();
  const transfer = { kind: name, name: t[name].doing(whatOf(files)), isHidden: true, file: name === "download" && one };
  const ended = run(transfer, name, files);
  addTransfers([transfer]);
  const list = () => {
    transfer.isHidden = false;
    transferChanged();
  };
  const timer = setTimeout(list, LISTED_AFTER);
  const done = await ended;
  clearTimeout(timer);
  if (transfer.isHidden && transfer.state === "done") dismiss([transfer]);
  else list();
  return done;
}

async function run(transfer, name, files) {
  const owner = currentUser().id;
  const isDownload = name === "download";
  const weigh = ({ file_size: size }) => (isDownload ? size : 1);
  const stop = new AbortController();
  const done = [];
  const failed = [];
  const tell = (changes) => transferChanged(Object.assign(transfer, changes));
  const count = () => t.of({ done: formatNumber(done.length), all: formatNumber(files.length) });
  const goOn = () => tell({ status: isDownload && files.length === 1 ? null : count() });
  const wait = (until) => tell({ status: t.waits({ count: count(), time: formatClock(until) }) });
  const cancel = () => {
    transfer.state = "failed";
    stop.abort();
  };
  tell({ state: "running", error: "", moved: 0, size: files.reduce((sum, file) => sum + weigh(file), 0), cancel });
  for (const file of files) {
    const before = transfer.moved;
    const progress = (bytes) => tell({ moved: before + bytes });
    const attempt = () => {
      goOn();
      return ACTIONS[name].send(file, { signal: stop.signal, progress });
    };
    try {
      await patiently(attempt, stop.signal, wait);
      done.push(file);
    } catch (error) {
      if (!stop.signal.aborted) failed.push({ file, reason: reasonOf(name, error) });
    }
    if (stop.signal.aborted) break;
    tell({ moved: before + weigh(file) });
  }
  if (currentUser()?.id !== owner) return 0;
  if (!stop.signal.aborted) {
    const again = failed.length > 0 && (() => run(transfer, name, failed.map(({ file }) => file)));
    tell({ state: again ? "failed" : "done", status: transfer.status && count(), error: problemsOf(failed), again });
  }
  if (!isDownload) dispatchEvent(new Event("files"));
  if (name === "restore") dispatchEvent(new CustomEvent("restored", { detail: done }));
  say(name, files, done, failed);
  return done.length;
}

/** Does `send()`, again after each refusal that ends by itself, until `signal` is aborted. `begin` is for `waitOut`. */
export async function patiently(send, signal, begin = undefined) {
  for (let failures = 1; ; failures += 1) {
    try {
      return await send();
    } catch (error) {
      if (!isTemporary(error) || error.status === 504) throw error;
      if (!signal.aborted) await waitOut(error, { failures: error.status === 429 ? 0 : failures, signal, begin });
      signal.throwIfAborted();
    }
  }
}

/** Says what has been done, with a button that undoes a deletion, and what has not. */
function say(name, files, done, failed) {
  const { done: participle } = t[name];
  if (done.length > 0 && name !== "download") {
    const action = name === "delete" && button(t.undo, { kind: "quiet", "aria-label": t.undo_of({ what: whatOf(done) }),
      "aria-keyshortcuts": "Control+Z Meta+Z", on: { click: () => undo(deletion) } });
    const notice = notify(t.done({ what: whatOf(done, files), n: done.length, participle }), { action });
    const deletion = { files: done, notice };
    if (action) deletions.push(deletion);
  }
  if (failed.length === 0) return;
  const [{ reason }, ...others] = failed;
  const isSame = others.every((other) => other.reason === reason);
  const detail = t.failed({ what: whatOf(failed.map(({ file }) => file), files), n: failed.length, participle,
    reason: isSame ? reason : t.see_list });
  notifyError(new ApiError({ status: null, detail }));
}

/** Deletions of which notices stand, or stood: `{ files, notice }`, the latest last. */
const deletions = [];

function undo({ files, notice }) {
  takeAway(notice);
  act("restore", files);
}

addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
  if (key !== "z" || !(ctrlKey || metaKey) || altKey || shiftKey || isInField()) return;
  const latest = deletions.findLast(({ notice }) => notice.isConnected);
  if (!latest || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  undo(latest);
});

/** What is there again needs no button to undo its deletion. The event names the files, or none for all. */
addEventListener("restored", (/** @type {CustomEvent} */ { detail: restored }) => {
  const ids = restored && new Set(restored.map(({ id }) => id));
  for (const deletion of deletions) {
    deletion.files = ids ? deletion.files.filter(({ id }) => !ids.has(id)) : [];
    if (deletion.files.length === 0) takeAway(deletion.notice);
  }
  deletions.splice(0, Infinity, ...deletions.filter(({ files, notice }) => files.length && notice.isConnected));
});

/** "keys.txt", "12 files" or "3 of 12 files". */
function whatOf(some, all = some) {
  if (all.length === 1) return all[0].filename;
  const count = formatNumber(all.length);
  return t.files({ count: some.length < all.length ? t.of({ done: formatNumber(some.length), all: count }) : count });
}

function reasonOf(name, error) {
  if (error instanceof ApiError) return (error.reason === "FILE_NOT_FOUND" && t[name].gone) || error.message;
  console.error(error);
  return texts.errors.unknown;
}

/** The names of files with what they met, those that met the same together. */
export function problemsOf(failed) {
  return [...Map.groupBy(failed, ({ reason }) => reason)].map(([reason, group]) => el("span", { class: "under" },
    group.map(({ file }, index) => [index > 0 && ", ", nameText(file.filename)]), `: ${reason}`));
}
