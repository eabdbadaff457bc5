// Requests whose bytes are counted while they move: uploads, downloads and exports, which are then saved.

import { addressOf, authorized, errorOf, headersFor, offlineError } from "./api.js";
import { el } from "./dom.js";

/** Milliseconds without progress after which an upload or a download is given up. */
const STALLED = 60_000;
/** Milliseconds for which what takes long is waited for: an upload that a proxy may be passing on, or an export. */
export const UNANSWERED = 600_000;
/** Milliseconds after which the browser has surely begun to save, and the contents may go. */
const BEGUN = 60_000;

/**
 * Uploads a file into a folder, or to a `path` that `isOpen` to anyone, and answers its metadata. One that is sent
 * again with the same `key` is stored once. `progress(sent)` is called with bytes; `signal` gives the upload up (an
 * `AbortError`). A token that has expired when the service looks at it is renewed, and the file sent again.
 *
 * The form (RFC 7578) is made here. `FormData` would send a quote in a name as `%22`, which could be a part of the name
 * as well; `filename*` (RFC 8187) says every name as it is. The boundary is random, so no file can hold it.
 */
export async function upload(file, { path, isOpen, key, folder, progress, signal }) {
  const boundary = [...crypto.getRandomValues(new Uint32Array(5))].map((word) => word.toString(36)).join("");
  const name = encodeURIComponent(file.name.toWellFormed());
  const disposition = `Content-Disposition: form-data; name="file"; filename*=UTF-8''${name}`;
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: ${file.type}\r\n\r\n`;
  const place = `--${boundary}\r\nContent-Disposition: form-data; name="folder"\r\n\r\n${folder}\r\n`;
  const body = new Blob([isOpen ? "" : place, head, file, `\r\n--${boundary}--\r\n`]);
  const headers = { "Content-Type": `multipart/form-data; boundary=${boundary}`, "Idempotency-Key": key };
  const counted = (sent) => progress(Math.min(sent, file.size));
  const send = (token) => move("POST", path, { body, headers, progress: counted, signal }, token);
  const answer = await (isOpen ? send(null) : authorized({ signal }, send));
  return JSON.parse(await answer.contents.text());
}

/**
 * Downloads a path. Answers `{ contents, header(name) }`: a `Blob`, which browsers keep on disk where it is large, and
 * what a header says, or `null`. `progress(received)` is called with bytes; `headers` may ask for a part; `patience`
 * are the milliseconds in which the answer has to begin.
 */
export const download = (path, options) => authorized(options, (token) => move("GET", path, options, token));

/**
 * Sends a request whose bytes are counted, those of its body or else those of the answer, and answers as `download`. A
 * connection on which nothing moves any more is given up.
 */
export async function move(method, path, /** @type {any} */ options, token) {
  const { body, query, headers = {}, progress = (_bytes) => {}, signal, patience = STALLED } = options;
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
    const all = { ...(token && headersFor(token)), ...headers };
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
  const header = (name) => moving.getResponseHeader(name);
  if (moving.status < 300) return { contents: moving.response, header };
  if (moving.status === 408) throw offlineError(); // the service gave up a connection on which nothing came any more
  throw errorOf(moving.status, header, await moving.response.text());
}

/**
 * Asks for a CSV file, with the byte order mark by which Excel sees that it is UTF-8, and lets the browser save it
 * under the name that the API gives it. Answers `{ name, size }`. The contents are saved only when they are whole: a
 * broken transfer throws, and leaves no file that looks complete. It is given up where the person signs out.
 */
export async function saveAttachment(path, query) {
  const stop = new AbortController();
  const { signal } = stop;
  addEventListener("person", () => stop.abort(), { signal });
  try {
    const options = { query: { ...query, bom: true }, signal, patience: UNANSWERED };
    const { contents, header } = await download(path, options);
    const name = /filename=([\w.-]+)/.exec(header("Content-Disposition"))?.[1] ?? "export.csv";
    save(contents, name);
    return { name, size: contents.size };
  } finally {
    stop.abort(); // takes the listener away
  }
}

/**
 * Lets the browser save a text or a `Blob` under a name. The address of the contents is of this origin, so they get a
 * type that no browser shows: a file may be a page with scripts.
 */
export function save(contents, name) {
  const address = URL.createObjectURL(new Blob([contents], { type: "application/octet-stream" }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), BEGUN);
}
