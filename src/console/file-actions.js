// What is done with one or several files: downloading, making public, deleting, restoring. Where the service takes no
// request for all of them, one follows another, because it counts them; whatever takes long is one line in the list of
// transfers. When files were changed, there is an event `files`.
//
// A download is received by this page and then saved, so its token stays in a header. Browsers keep what is received
// on disk, so a file need not fit into memory.

import { ApiError, currentUser, del, get, loaded, post, put, service } from "./api.js";
import { download, save } from "./contents.js";
import { button } from "./controls.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { el, isInField, nameText } from "./dom.js";
import { formatClock, formatDateTime, formatNumber } from "./format.js";
import { field } from "./forms.js";
import { notify, notifyError, takeAway } from "./frame.js";
import { texts } from "./texts.js";
import { files as fileTexts } from "./texts/files.js";
import { addTransfers, dismiss, isTemporary, transferChanged, waitOut } from "./transfers.js";
import { viewOf } from "./view.js";
import "./tray.js";

const t = fileTexts.actions;
/** Milliseconds after which it is in the list of transfers. Most is done by then. */
const LISTED_AFTER = 800;

/**
 * By names, which are those of their texts: `send(file, options)`, or `all(ids, files, signal)` where one request is
 * for up to 1,000 files, or `most`, and `fits(file)` where it is not for all of them; `prepare(files)` may ask how, and
 * answers them or nothing; what only `reads` changes no file. What a page adds here may be about anything that has an
 * `id` and a name, `filename`. `link` and `zip` take a folder as well, `{ folder, filename }` without an `id`.
 */
export const ACTIONS = {
  download: { drawing: "download", send: receive, reads: true },
  zip: { all: receiveZip, reads: true, most: 100 },
  link: { drawing: "link", most: 100 }, // `file-links.js` makes it, and asks how; then there is an event `links`
  rename: { prepare: rename },
  move: { drawing: "folder", prepare: whereTo,
    all: (ids, [{ to: folder }]) => post("/uploads/update", { ids, folder }) },
  publish: { all: (ids) => post("/uploads/update", { ids, is_public: true }), fits: (file) => !file.is_public },
  hide: { all: (ids) => post("/uploads/update", { ids, is_public: false }), fits: (file) => file.is_public },
  restore: { send: ({ id }) => post(`/uploads/${id}/restore`) },
  delete: { drawing: "trash", kind: "danger", all: (ids) => post("/uploads/delete", { ids }) },
  purge: { drawing: "trash", kind: "danger", send: ({ id }) => remove(`/uploads/${id}`, { permanently: true }) },
  end: { kind: "danger", send: ({ id }) => remove(`/links/${id}`) }, // of links
};

/** Asks for the folder of files that have none to go to yet. */
async function whereTo(files) {
  return files[0].to ? files : (await loaded(import("./folders.js"))).askFolder(files);
}

/** Asks for the new name of a file, whose ending is not selected, so that typing keeps it. */
async function rename([{ id, filename }]) {
  const { title, label, busy } = t.rename;
  const name = field({ name: "filename", label: t.rename.name, value: filename, required: true, maxlength: 255,
    autocomplete: "off" });
  const end = filename.lastIndexOf(".") > 0 ? filename.lastIndexOf(".") : filename.length;
  name.input.addEventListener("focus", () => name.input.setSelectionRange(0, end), { once: true });
  const isDone = await formDialog(title, { fields: [name], label, busy,
    submit: (values) => put(`/uploads/${id}`, values) });
  if (isDone) dispatchEvent(new Event("files"));
}

/** What is gone already has been deleted. */
function remove(path, query = {}) {
  return del(path, { query }).catch((error) => {
    if (!["FILE_NOT_FOUND", "LINK_NOT_FOUND"].includes(error.reason)) throw error;
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
 * Lets the browser itself download files or a folder as one archive, which may be larger than all that is free here.
 * What the service would refuse it says at the first byte.
 */
async function receiveZip(ids, [{ folder }], signal) {
  const query = ids[0] ? { ids: ids.join() } : { folder };
  await download("/uploads/zip", { query, headers: { Range: "bytes=0-0" }, signal });
  const address = await viewOf("/uploads/zip", query);
  signal.throwIfAborted();
  el("a", { href: address, download: "" }).click();
}

/**
 * Does one of `ACTIONS` with files, after a question if it has one, unless all of it can be undone, and calls `begun()`
 * when it begins. Answers, when it has ended, with how many files it was done. What fails is said here.
 */
export async function act(wanted, given, begun = () => {}) {
  if (given.length > ACTIONS[wanted].most) throw new ApiError({ status: null, detail: t.too_many });
  const files = await (ACTIONS[wanted].prepare?.(given) ?? given);
  if (!files) return 0;
  if (wanted === "link") {
    const { share } = await loaded(import("./file-links.js"));
    const isMade = await share(files);
    if (isMade) dispatchEvent(new Event("links"));
    return Number(isMade);
  }
  const name = wanted === "delete" && service.trashDays === 0 ? "purge" : wanted;
  const { label, title, text } = t[name];
  const one = files.length === 1 && files[0];
  if (title && (name !== "delete" || await haveLinks(files))) {
    const until = one && formatDateTime(one.expires_at);
    const question = el("span", {}, one && nameText(one.filename), text({ one, service, until }));
    const options = { label, danger: ACTIONS[name].kind === "danger", act() {} };
    if (!(await confirmDialog(title(one ? t[name].one ?? t.one : whatOf(name, files)), question, options))) return 0;
  }
  begun();
  const transfer = { kind: name, name: t[name].doing(whatOf(name, files)), isHidden: true,
    file: name === "download" && one };
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
  const { all, send, reads } = ACTIONS[name];
  for (const group of all ? [files] : files.map((file) => [file])) {
    const before = transfer.moved;
    const progress = (bytes) => tell({ moved: before + bytes });
    const attempt = () => {
      goOn();
      const { signal } = stop;
      return all ? all(group.map(({ id }) => id), group, signal) : send(group[0], { signal, progress });
    };
    try {
      const { missing = [] } = (await patiently(attempt, stop.signal, wait)) ?? {};
      const gone = new Set(name === "delete" ? [] : missing); // what is gone has been deleted
      for (const file of group) {
        if (gone.has(file.id)) failed.push({ file, reason: texts.errors.FILE_NOT_FOUND });
        else done.push(file);
      }
    } catch (error) {
      if (!stop.signal.aborted) failed.push(...group.map((file) => ({ file, reason: reasonOf(name, error) })));
    }
    if (stop.signal.aborted) break;
    tell({ moved: before + (all ? group.length : weigh(group[0])) });
  }
  if (currentUser()?.id !== owner) return 0;
  if (!stop.signal.aborted) {
    const again = failed.length > 0 && (() => run(transfer, name, failed.map(({ file }) => file)));
    tell({ state: again ? "failed" : "done", status: transfer.status && count(), error: problemsOf(failed), again });
  }
  if (!reads) dispatchEvent(new Event("files"));
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
  const { done: participle, said = t.done } = t[name];
  const one = files.length === 1;
  if (done.length > 0 && !ACTIONS[name].reads) {
    const action = name === "delete" && button(t.undo, { kind: "quiet",
      "aria-label": t.undo_of({ what: whatOf(name, done) }), "aria-keyshortcuts": "Control+Z Meta+Z",
      on: { click: () => undo(deletion) } });
    const notice = notify(said({ what: whatOf(name, done, files), n: done.length, one, participle }), { action });
    const deletion = { files: done, notice };
    if (action) deletions.push(deletion);
  }
  if (failed.length === 0) return;
  const [{ reason }, ...others] = failed;
  const isSame = others.every((other) => other.reason === reason);
  const detail = t.failed({ what: whatOf(name, failed.map(({ file }) => file), files), n: failed.length, participle,
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

/** "keys.txt", "12 files", "3 of 12 files" or "3 of 12 links". */
export function whatOf(name, some, all = some) {
  if (all.length === 1) return all[0].filename;
  const count = formatNumber(all.length);
  const part = some.length < all.length && t.of({ done: formatNumber(some.length), all: count });
  return (t[name].many ?? t.files)({ count: part || count });
}

function reasonOf(name, error) {
  if (error instanceof ApiError) return (error.reason === "FILE_NOT_FOUND" && t[name].gone) || error.message;
  console.error(error);
  return texts.errors.unknown;
}

/** The names of files with what they met, those that met the same together. */
function problemsOf(failed) {
  return [...Map.groupBy(failed, ({ reason }) => reason)].map(([reason, group]) => el("span", { class: "under" },
    group.map(({ file }, index) => [index > 0 && ", ", nameText(file.filename)]), `: ${reason}`));
}
