// The queue of uploads. One file is sent at a time: the service counts uploads, and another connection would not make
// the line to it faster. A refusal that time heals stops the queue until then; any other is the file's own.

import { ApiError, currentUser, get, service, setCurrentUser } from "./api.js";
import { upload } from "./contents.js";
import { declaredType, isTaken, UNKNOWN } from "./file-type.js";
import { formatBytes, formatNumber } from "./format.js";
import { begunAs, giveUp, LARGE, uploadInPieces } from "./resumable.js";
import { texts } from "./texts.js";
import { typeName } from "./texts/file-types.js";
import { files as fileTexts } from "./texts/files.js";
import { addTransfers, isActive, isTemporary, transferChanged, transfers, waitOut } from "./transfers.js";

const t = fileTexts.transfers;
/** Most files that wait at once. */
export const MAX_WAITING = 1000;
/** How often a file is sent whose answer does not come. One whose connection breaks on the way goes on in pieces. */
const MAX_BREAKS = 3;
/** Milliseconds in which uploads that end bring lists of files up to date once. */
const REFRESH = 1500;
/** Refusals that the same file meets again: its link has ended, its size, its type, or its name. */
const FINAL = [404, 413, 415, 422];
/** Where the signed-in person's own files go. What `addUploads` is given in its place has the same members. */
const OWN = {
  path: "/uploads",
  stored(transfer) {
    findOlder(transfer);
    refreshing ??= setTimeout(() => {
      refreshing = null;
      dispatchEvent(new Event("files"));
    }, REFRESH);
  },
  why: (transfer, error) => (error.status === 507 ? whatIsFull(transfer, error) : null),
  lookAgain: () => get("/auth/me"),
};

/** Why the queue waits and until when: `{ until, isLimit, end() }`, or `null`. */
export let pause = null;
let isRunning = false;
let refreshing = null;
let unreached = 0;
/** How fast it goes: since when, in milliseconds, how many bytes, and the files a minute of a limit that was met. */
let pace = { since: 0, bytes: 0, files: Infinity };

addEventListener("person", () => { unreached = 0; });

const unfinished = () => transfers.filter((transfer) => transfer.kind === "upload" && isActive(transfer));

/** How many minutes what is left takes, at the speed so far and by the limit that was met. */
export function minutesLeft() {
  const left = unfinished();
  const bytes = left.reduce((sum, { size, moved }) => sum + size - moved, 0);
  const bySpeed = pace.bytes ? (bytes / pace.bytes) * (Date.now() - pace.since) : 0;
  return Math.ceil(Math.max(bySpeed / 60_000, left.length / pace.files));
}

/**
 * Adds files to the queue, each for the folder `folderFor(file)`. Answers how many found no place in it. What is added
 * together may have the same name as another without being a new version of it. Other than to the person's own files
 * they go `to` `{ path, isOpen, check(file), stored(transfer), why(transfer, error), lookAgain() }`: `check` fails
 * where a file is known not to be taken, `stored` is told what has been, `why` may answer a better sentence for a
 * refusal, and `lookAgain` asks the service for anything else, so that it says what it could not while a file arrived.
 */
export function addUploads(files, folderFor, to = OWN) {
  const taken = files.slice(0, Math.max(0, MAX_WAITING - unfinished().length));
  const batch = new Set();
  addTransfers(taken.map((file) => uploadOf(file, { folder: folderFor(file), batch, to })));
  run();
  return files.length - taken.length;
}

/** A key of an upload: the service stores what is sent again with it once, so an answer that was lost does no harm. */
const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(36)).join("-");

/** An upload, where `batch` in `target` holds the ids of files that were added with it. */
function uploadOf(source, target) {
  const { name, size } = source;
  const person = target.to.isOpen ? null : currentUser()?.id;
  const transfer = { kind: "upload", state: "waiting", key: newKey(), source, person, ...target, name, size, moved: 0,
    breaks: 0, offset: Infinity, inPieces: size > LARGE,
    cancel() {
      transfer.state = "failed";
      transfer.stop?.abort();
      giveUp(transfer);
      if (!transfers.some(isWaiting)) pause?.end();
    },
    again() {
      Object.assign(transfer, { state: "waiting", breaks: 0, moved: 0, offset: Infinity });
      transferChanged(transfer);
      run();
    } };
  return transfer;
}

const isWaiting = ({ kind, state }) => kind === "upload" && state === "waiting";

async function run() {
  if (isRunning) return;
  isRunning = true;
  pace = { since: Date.now(), bytes: 0, files: Infinity };
  try {
    for (let next; (next = transfers.find(isWaiting)); ) await send(next);
  } finally {
    isRunning = false;
  }
}

async function send(transfer) {
  const stop = new AbortController();
  transferChanged(Object.assign(transfer, { state: "running", error: "", isBroken: false, stop }));
  try {
    const file = await readable(transfer.source);
    if (begunAs(transfer)) transfer.inPieces = transfer.mayBeStored = true;
    // What may have been stored before its answer was lost, or has begun to be, is the service's to judge.
    if (!transfer.mayBeStored) await transfer.to.check?.(file);
    stop.signal.throwIfAborted();
    const progress = (moved) => {
      pace.bytes += Math.max(0, moved - transfer.moved);
      transferChanged(Object.assign(transfer, { moved }));
    };
    const stands = (offset) => {
      if (offset > transfer.offset) unreached = transfer.breaks = 0;
      transferChanged(Object.assign(transfer, { offset, moved: offset }));
    };
    const { key, folder, inPieces, to: { path, isOpen } } = transfer;
    transfer.file = await (inPieces ? uploadInPieces(file, transfer, { stands, progress, signal: stop.signal })
      : upload(file, { path, isOpen, key, folder, progress, signal: stop.signal }));
    Object.assign(transfer, { state: "done", moved: transfer.size });
    transfer.batch.add(transfer.file.id);
    unreached = 0;
    transfer.to.stored(transfer);
  } catch (error) {
    if (transfer.state === "running") await settle(transfer, error);
  }
  transferChanged(transfer);
}

/** Looks for another file of the name and the folder of one that has been uploaded, in this tab if there is one. */
async function findOlder(transfer) {
  const { filename, folder } = transfer.file;
  const isOlder = (file) => file?.filename === filename && file.folder === folder && !transfer.batch.has(file.id);
  const known = transfers.find(({ kind, file }) => kind === "upload" && isOlder(file))?.file;
  const found = known ? null : await get("/uploads", { folder, search: filename, size: 100 }).catch(() => null);
  const older = known ?? found?.items.find(isOlder);
  if (older) transferChanged(Object.assign(transfer, { older }));
}

/** The file with its type. Fails where it cannot be read any more, is too large, or of a type that is not taken. */
export async function readable(source) {
  if (source.size > service.fileBytes) {
    const detail = t.too_large({ limit: formatBytes(service.fileBytes), bytes: formatNumber(source.size) });
    throw new ApiError({ status: 413, detail });
  }
  const type = await declaredType(source, service).catch(() => {
    throw new ApiError({ status: 422, detail: t.unreadable });
  });
  if (type !== UNKNOWN && !isTaken(type, service)) {
    const types = service.types.map((type) => typeName(type)).join(", ");
    throw new ApiError({ status: 415, detail: t.other_type({ type: typeName(type, source.name), types }) });
  }
  return type === source.type ? source : new File([source], source.name, { type });
}

/** Decides what a failure means: the queue waits, or the file is marked with the reason. */
async function settle(transfer, error) {
  const { inPieces, moved, size } = transfer;
  const isBreak = error.status === 504 || (error.status === 0 && moved > 0);
  if (isBreak && !(inPieces && error.status === 0)) transfer.breaks += 1;
  transfer.mayBeStored ||= moved === size;
  transfer.inPieces ||= isBreak && !transfer.mayBeStored;
  if (error.reason === "KEY_REUSED") {
    // The file was changed after an attempt whose answer was lost, so it is another upload.
    Object.assign(transfer, { state: "waiting", moved: 0, key: newKey() });
  } else if ((!isTemporary(error) && error.reason !== "UPLOAD_BUSY") || transfer.breaks === MAX_BREAKS) {
    if (FINAL.includes(error.status)) {
      delete transfer.again;
      giveUp(transfer);
    }
    Object.assign(transfer, { state: "failed", error: await transfer.to.why(transfer, error) ?? sentenceOf(error) });
  } else {
    Object.assign(transfer, { state: "waiting", moved: inPieces ? moved : 0, isBroken: error.status === 0 });
    transferChanged(transfer);
    await waitFor(error);
    // A service that refuses a token while a file arrives may end the connection before its answer is read. It is asked
    // again without a file, so that the token is renewed, or the person signs in again, before the next attempt.
    if (error.status !== 429) await transfer.to.lookAgain().catch(() => {});
  }
}

function sentenceOf(error) {
  if (!(error instanceof ApiError)) console.error(error);
  if (error.status === 0) return t.broken;
  return error instanceof ApiError ? error.message : texts.errors.unknown;
}

/** Says whose limit a file has met, which the service does not tell: the person's own, or that of the whole service. */
async function whatIsFull({ size }, error) {
  const user = await get("/users/me").catch(() => null);
  if (!user) return sentenceOf(error);
  setCurrentUser(user);
  const { total_uploads: files, total_storage_used: bytes, storage_quota: quota, file_quota: most } = user.stats;
  if (bytes + size > quota) return t.full({ used: formatBytes(bytes), quota: formatBytes(quota) });
  return files >= most ? t.full_files({ quota: formatNumber(most) }) : t.full_service;
}

/** Waits until the file may be sent again, and says so. */
async function waitFor(error) {
  const isLimit = error.status === 429;
  unreached = isLimit ? 0 : unreached + 1;
  if (isLimit) pace.files = error.limit || Infinity;
  const stop = new AbortController();
  const show = (shown) => {
    pause = shown;
    transferChanged();
  };
  await waitOut(error, { failures: unreached, signal: stop.signal,
    begin: (until) => show({ until, isLimit, end: () => stop.abort() }) });
  show(null);
}
