// Requests whose bytes are counted while they move: uploads, downloads and exports.

import { addressOf, authorized, headersFor } from "./api.js";
import { errorOf, offlineError } from "./errors.js";

/** Milliseconds without progress after which an upload or a download is given up. */
const STALLED = 60_000;
/** Milliseconds for which what takes long is waited for: an upload that a proxy may be passing on, or an export. */
export const UNANSWERED = 600_000;

/**
 * Uploads a file and answers its metadata. One that is sent again with the same `key` is stored once. `fields` are
 * further parts, such as `description`; `progress(sent, total)` is called with bytes; `signal` gives the upload up (an
 * `AbortError`). A token that has expired when the service looks at it is renewed, and the file sent again.
 */
export async function upload(file, /** @type {any} */ { key, fields = {}, progress = () => {}, signal }) {
  const { body, type } = formOf(file, fields);
  const headers = { "Content-Type": type, "Idempotency-Key": key };
  const counted = (sent) => progress(Math.min(sent, file.size), file.size);
  const answer = await authorized({ signal }, (token) =>
    transfer("POST", "/uploads", { body, headers, progress: counted, signal }, token));
  return JSON.parse(await answer.contents.text());
}

/**
 * Downloads a path. Answers `{ contents, disposition }`: a `Blob`, which browsers keep on disk where it is large, and
 * that header, or `null`. `progress(received)` is called with bytes; `headers` may ask for a part; `patience` are the
 * milliseconds in which the answer has to begin.
 */
export function download(path, /** @type {any} */ { progress = () => {}, ...options } = {}) {
  return authorized(options, (token) => transfer("GET", path, { progress, ...options }, token));
}

/**
 * The form of an upload (RFC 7578). `FormData` would send a quote in a name as `%22`, which could be a part of the name
 * as well; `filename*` (RFC 8187) says every name as it is. The boundary is random, so no file can hold it.
 */
function formOf(file, fields) {
  const boundary = [...crypto.getRandomValues(new Uint32Array(5))].map((word) => word.toString(36)).join("");
  const part = (disposition) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`;
  const texts = Object.entries(fields).map(([name, value]) => `${part(`name="${name}"`)}\r\n${value}\r\n`);
  const name = encodeURIComponent(file.name.toWellFormed());
  const head = `${part(`name="file"; filename*=UTF-8''${name}`)}Content-Type: ${file.type}`;
  const body = new Blob([...texts, `${head}\r\n\r\n`, file, `\r\n--${boundary}--\r\n`]);
  return { body, type: `multipart/form-data; boundary=${boundary}` };
}

/**
 * Sends a request whose bytes are counted, those of its body or else those of the answer, and answers as `download`. A
 * connection on which nothing moves any more is given up.
 */
async function transfer(method, path, /** @type {any} */ options, token) {
  const { body, query, headers = {}, progress, signal, patience = STALLED } = options;
  const moving = new XMLHttpRequest();
  const giveUp = () => moving.abort();
  let timer = null;
  const wait = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, milliseconds);
  };
  await new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    signal?.addEventListener("abort", giveUp);
    moving.open(method, addressOf(path, query));
    moving.responseType = "blob";
    const all = { ...headersFor(token), ...headers };
    for (const [name, value] of Object.entries(all)) moving.setRequestHeader(name, value);
    (body ? moving.upload : moving).onprogress = (event) => {
      wait(STALLED);
      progress(event.loaded);
    };
    moving.upload.onload = () => wait(UNANSWERED);
    moving.onabort = () => reject(signal?.aborted ? signal.reason : offlineError({ name: "TimeoutError" }));
    moving.onerror = () => reject(offlineError());
    moving.onload = resolve;
    wait(patience);
    moving.send(body);
  }).finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  });
  const disposition = moving.getResponseHeader("Content-Disposition");
  if (moving.status < 300) return { contents: moving.response, disposition };
  throw errorOf(moving.status, (name) => moving.getResponseHeader(name), await moving.response.text());
}
