// Uploads in several requests (tus 1.0.0, https://tus.io/protocols/resumable-upload). One that broke goes on with what
// the service has of it, also after the page was loaded again, if the same file is chosen for the same folder again.

import { ApiError, authorized, currentUser, get } from "./api.js";
import { move, UNANSWERED } from "./contents.js";
import { isActive, transfers } from "./transfers.js";

/** Files of more bytes are always sent so. */
export const LARGE = 8 * 1024 * 1024;
/** Most bytes of a request. Many proxies take 100 MB. */
const PIECE = 50_000_000;
/** Milliseconds after which the service keeps no upload that is not complete. */
const LONGEST = 7 * 24 * 60 * 60 * 1000;
/**
 * What the keys in `localStorage` begin with. Their values are the time, the id of the upload at the service, and the
 * key of the transfer that goes on with it: of several tabs the last one that was asked to.
 */
const KEPT = "cloakroom.upload ";

/** What comes first in the keys of a person, or of a link, of which it tells only the beginning of its secret. */
const ownerKey = (person, path) => `${KEPT}${person ?? path.split("/")[2].slice(0, 8)} `;
const keyOf = ({ person, folder, to, source: { name, size, lastModified } }) =>
  ownerKey(person, to.path) + JSON.stringify([folder, name, size, lastModified]);
const pathOf = ({ isOpen, path }) => (isOpen ? path.replace(/files$/, "partial") : `${path}/partial`);
const forget = (transfer) => localStorage.removeItem(keyOf(transfer));

const kept = (transfer) => localStorage.getItem(keyOf(transfer))?.split(" ") ?? [];
const keep = (transfer, id) => localStorage.setItem(keyOf(transfer), `${Date.now()} ${id} ${transfer.key}`);
/** Whether a transfer has sent something of an upload with which another tab goes on, or has, until it was complete. */
const isElsewhere = (transfer) => transfer.offset < Infinity && kept(transfer)[2] !== transfer.key;

/** The path of the upload with which the file of a transfer goes on, if one has been begun. */
export function begunAs(transfer) {
  const [, id] = kept(transfer);
  return id && `${pathOf(transfer.to)}/${id}`;
}

/** Whether this browser has begun an upload by a link that is not complete. */
export const hasBegun = (path) => Object.keys(localStorage).some((key) => key.startsWith(ownerKey(null, path)));

function ask({ to }, method, path, /** @type {any} */ options = {}) {
  const all = { ...options, headers: { "Tus-Resumable": "1.0.0", ...options.headers } };
  const attempt = (token) => move(method, path, all, token);
  return to.isOpen ? attempt(null) : authorized(all, attempt);
}

const offsetIn = ({ header }) => Number(header("Upload-Offset"));

/**
 * Uploads the file of a transfer, from where it stands if it was begun before, and answers its metadata, by a link only
 * its name. `stands(offset)` is told how many bytes the service has, `progress(sent)` how many have been sent. Where
 * the service does not know the upload any more, it is begun anew, once.
 */
export async function uploadInPieces(file, transfer, { stands, progress, signal }) {
  for (let isAnew = false; ; isAnew = true) {
    if (isElsewhere(transfer)) throw new ApiError({ status: 409, reason: "UPLOAD_OVERTAKEN" });
    let path = begunAs(transfer);
    const isBegun = Boolean(path);
    if (isBegun) keep(transfer, kept(transfer)[1]);
    try {
      const askOffset = async () => offsetIn(await ask(transfer, "HEAD", path, { signal }));
      const patch = (options) => ask(transfer, "PATCH", path, { ...options, signal });
      const offset = path ? await askOffset() : 0;
      path ??= await begin(file, transfer, signal);
      const found = await sendFrom(offset, file, { patch, askOffset, stands, progress });
      const stored = found ? await get(`/uploads/${found.split("/").pop()}`, {}, signal) : { filename: file.name };
      forget(transfer);
      return stored;
    } catch (error) {
      if (!isBegun || isAnew || ![404, 412].includes(error.status)) throw error;
      forget(transfer);
      transfer.offset = Infinity;
    }
  }
}

/** Begins an upload. That is not given up on the way, because nobody would know then what to end at the service. */
async function begin(file, transfer, signal) {
  const metadata = { filename: file.name.toWellFormed(), filetype: file.type, folder: transfer.folder };
  const bytesOf = (text) => String.fromCharCode(...new TextEncoder().encode(text));
  const given = Object.entries(metadata).filter(([, text]) => text);
  const headers = { "Upload-Length": file.size,
    "Upload-Metadata": given.map(([key, text]) => `${key} ${btoa(bytesOf(text))}`).join(",") };
  const { header } = await ask(transfer, "POST", pathOf(transfer.to), { headers });
  for (const [key, value] of Object.entries(localStorage)) {
    if (key.startsWith(KEPT) && Date.now() - parseInt(value) > LONGEST) localStorage.removeItem(key);
  }
  keep(transfer, header("Location").split("/").pop());
  if (signal.aborted) giveUp(transfer);
  signal.throwIfAborted();
  return begunAs(transfer);
}

/** Sends what is missing from an offset on. Answers where the file is found then, or `null` where that is not said. */
async function sendFrom(offset, file, { patch, askOffset, stands, progress }) {
  for (;;) {
    stands(offset);
    const from = offset;
    const body = file.slice(from, from + PIECE);
    const headers = { "Content-Type": "application/offset+octet-stream", "Upload-Offset": from };
    const patience = body.size ? undefined : UNANSWERED;
    try {
      const answer = await patch({ headers, body, patience, progress: (sent) => progress(from + sent) });
      offset = offsetIn(answer);
      if (offset === file.size) return answer.header("Content-Location");
    } catch (error) {
      if (error.reason !== "OFFSET_MISMATCH") throw error;
      offset = await askOffset();
      if (offset === from) throw error;
    }
  }
}

/** Ends the upload of a file that is given up, unless another transfer goes on with it, or it is another person's. */
export async function giveUp(transfer) {
  const isSame = (other) => other !== transfer && other.to && isActive(other) && keyOf(other) === keyOf(transfer);
  const path = begunAs(transfer);
  if (!path || isElsewhere(transfer) || transfers.some(isSame)) return;
  if (transfer.person && transfer.person !== currentUser()?.id) return;
  forget(transfer);
  await ask(transfer, "DELETE", path, { again: false }).catch(() => {});
  if (transfer.to.isOpen) await transfer.to.lookAgain().catch(() => {});
}
