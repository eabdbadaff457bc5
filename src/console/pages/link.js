// The page of a link to a file, for people without an account. The secret of the link is the fragment of the address,
// which browsers send to nobody. The page needs no session and no API key, and leaves both as they are.

import { button, buttonLink, load, skeleton } from "../controls.js";
import { el, nameText, replace } from "../dom.js";
import { errorOf, offlineError } from "../errors.js";
import { formatBytes } from "../format.js";
import { brand, setTitle } from "../frame.js";
import { typeName } from "../texts/file-types.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.link;
/** Milliseconds after which the question what a link is to is given up. */
const TIMEOUT = 60_000;
/** The service's `Content-Disposition`: what to do, and the name quoted, bare or, where that is not all, encoded. */
const DISPOSITION = /^(\w+); filename=(?:"((?:[^"\\]|\\.)*)"|([^";]+))(?:; filename\*=UTF-8''(.+))?$/;

export const isBare = true;

export function show({ leaving: signal }) {
  const heading = el("h1", { tabindex: "-1" }, t.title);
  const place = el("div", {});
  const refresh = () => {
    const address = `/api/v1/links/${encodeURIComponent(location.hash.slice(1))}`;
    return load(place, {
      signal,
      waiting: skeleton(2),
      work: () => find(address, signal),
      show: (file) => {
        replace(heading, file ? nameText(file.name) : t.ended_title);
        setTitle(heading.textContent);
        return file ? shownFile(file, { address, signal, refresh }) : el("p", {}, t.ended);
      },
    });
  };
  refresh();
  return { element: el("div", { class: "narrow" }, brand(), heading, place), update: refresh };
}

/** What there is to know about the file, and its buttons. The link may end before they are pressed. */
function shownFile({ name, type, size, isShown }, { address, signal, refresh }) {
  const save = async () => {
    if (await find(address, signal)) el("a", { href: address, download: "" }).click();
    else refresh();
  };
  return [
    el("p", { class: "lead" }, [typeName(type, name), size && formatBytes(size)].filter(Boolean).join(" · ")),
    el("div", { class: "form-actions" },
      button(t.download, { kind: "primary", drawing: "download", act: save, failed: refresh }),
      isShown && buttonLink(t.open, address, { target: "_blank", rel: "noopener" })),
  ];
}

/** The file of a link, as the answer to a download describes it; `null` where the link has ended. */
async function find(address, signal) {
  let response;
  try {
    const either = AbortSignal.any([AbortSignal.timeout(TIMEOUT), signal]);
    response = await fetch(address, { method: "HEAD", cache: "no-store", credentials: "omit", signal: either });
  } catch (error) {
    signal.throwIfAborted();
    throw offlineError(error);
  }
  if (response.status === 404) return null;
  const header = (name) => response.headers.get(name);
  if (!response.ok) throw errorOf(response.status, header, "");
  const [, use, quoted, bare, encoded] = DISPOSITION.exec(header("Content-Disposition"));
  const name = encoded ? decodeURIComponent(encoded) : quoted?.replace(/\\(.)/g, "$1") ?? bare;
  const [type] = header("Content-Type")?.split(";") ?? []; // a text may have its charset there
  return { name, type, size: header("Content-Length"), isShown: use === "inline" };
}
