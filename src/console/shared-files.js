// What the page of a link to several files, or to a folder, shows of them: by folder, with small pictures where the
// link shows what it leads to, a button for each, and one for all. It is loaded only for such links.

import { button, iconButton } from "./controls.js";
import { append, el, icon, nameText } from "./dom.js";
import { formatBytes, formatNumber, timeText } from "./format.js";
import { notify } from "./frame.js";
import { markOf } from "./marks.js";
import { typeName } from "./texts/file-types.js";
import { oneFile } from "./texts/one-file.js";
import { sharedFiles as t } from "./texts/shared-files.js";
import { thumbnailOf } from "./view.js";

/** What `linkPage` shows of a link to several files. */
export function sharedFiles(about, { address, ask, refresh }) {
  const { name, sender, total_files: total, total_size: size, expires_at: until } = about;
  const count = total === null ? t.many : t.count({ n: total, count: formatNumber(total) });
  const archive = `${address}/${encodeURIComponent(name ?? "files")}.zip`;
  const saveAll = async () => (await save(archive, ask)) || refresh();
  return {
    title: name ?? count,
    sender,
    mark: el("span", { class: "mark" }, icon(name === null ? "files" : "folder")),
    sent: t.sent[name === null ? "files" : "folder"],
    content: [
      name !== null && el("p", { class: "lead" }, count),
      total > 0 && el("div", { class: "form-actions" }, button(t.download_all({ size: formatBytes(size) }),
        { kind: "primary", drawing: "download", act: saveAll })),
      total === null && el("p", { class: "note" }, t.too_many),
      el("p", { class: "aside" }, oneFile.link.until, " ", timeText(until)),
      total === 0 ? el("p", { class: "note" }, t.none) : listOf(about, { address, ask, refresh }),
    ],
  };
}

/** Lets the browser save what is at an address; answers whether it is there. */
async function save(address, ask) {
  const isThere = Boolean(await ask(address, { method: "HEAD" }));
  if (isThere) el("a", { href: address, download: "" }).click();
  return isThere;
}

/** The files below the names of their folders, and a button for those after them. */
function listOf(about, { address, ask, refresh }) {
  const place = el("div", { class: "shared-files" });
  const lists = new Map();
  const listFor = (folder) => {
    if (!lists.has(folder)) {
      lists.set(folder, el("ul", {}));
      const title = folder !== "/" && el("h2", {}, icon("folder"), nameText(folder.slice(1)));
      append(place, title, lists.get(folder));
    }
    return lists.get(folder);
  };
  const add = ({ files, next }) => {
    for (const file of files) append(listFor(file.folder), rowOf(file, about.inline, { address, ask, refresh }));
    if (next) append(place, button(t.more, { act: ({ target }) => showMore(next, target.closest("button")) }));
  };
  const showMore = async (next, more) => {
    const answer = await ask(`${address}?about=true&after=${encodeURIComponent(next)}`);
    if (!answer) return refresh();
    const page = await answer.json();
    more.remove();
    const before = place.querySelectorAll("li").length;
    add(page);
    return place.querySelectorAll("li")[before]?.querySelector("button").focus();
  };
  add(about);
  return place;
}

/** A file, whose name leads to what is in it where the link shows that. */
function rowOf(file, inline, { address, ask, refresh }) {
  const { id, filename: name, file_size: size, content_type: type } = file;
  const path = `${address}/${id}`;
  const saveIt = async () => {
    if (await save(path, ask)) return;
    await refresh();
    notify(t.gone({ name }));
  };
  return el("li", {},
    inline ? thumbnailOf(file, async () => path) : markOf(file),
    el("div", {},
      el(inline ? "a" : "span", { class: "clamp", title: name, ...(inline && { href: path, target: "_blank",
        rel: "noopener" }) }, nameText(name)),
      el("p", { class: "small soft" }, `${typeName(type, name)} · ${formatBytes(size)}`)),
    iconButton(t.download({ name }), "download", { act: saveIt }));
}
