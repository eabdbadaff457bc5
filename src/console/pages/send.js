// The page of a link by which people without an account send files. What is sent and what has arrived is in the list of
// transfers, which stands in the page.

import { ApiError } from "../api.js";
import { button } from "../controls.js";
import { append, el, focusOn, icon, replace } from "../dom.js";
import { takeUploads } from "../drops.js";
import { formatBytes, formatNumber, timeText } from "../format.js";
import { aboutOf, linkPage } from "../link-page.js";
import { begunAs, hasBegun } from "../resumable.js";
import { typeName } from "../texts/file-types.js";
import { send as t } from "../texts/send.js";
import { open, tray } from "../tray.js";
import { addUploads } from "../uploads.js";

const listOf = new Intl.ListFormat("en", { type: "conjunction" });

export function show(context) {
  const page = linkPage(context, t, shownOf);
  append(page.element, tray);
  open(true);
  return page;
}

function shownOf(about, link) {
  const { note, sender, max_file_size: limit, allowed_types: types, expires_at: until } = about;
  const room = el("p");
  const actions = el("div", { class: "send-actions" });
  const target = targetOf(about, link, (now) => {
    const { files_left: files, bytes_left: bytes } = now;
    const hadFocus = actions.contains(document.activeElement);
    const full = isFull(now) && (hasBegun(pathOf(link)) ? t.begun : t.full);
    actions.hidden = full === t.full;
    if (actions.hidden && hadFocus) focusOn();
    replace(room, full || t.left({ files, count: formatNumber(files), bytes: formatBytes(bytes) }));
  });
  const { files, tree } = takeUploads((given) => addUploads(given, () => null, target), link.signal);
  append(actions, el("div", { class: "form-actions" },
    button(t.choose, { kind: "primary", drawing: "upload", act: () => files.click() }),
    "webkitdirectory" in tree && button(t.folder, { kind: "quiet upload-folder", act: () => tree.click() })),
  el("p", { class: "aside drop-hint" }, t.drop));
  const names = listOf.format(new Set(types.map((type) => typeName(type))));
  return { title: t.title, mark: el("span", { class: "mark" }, icon("upload")), sender, sent: t.sent, content: [
    note && el("p", { class: "description note", dir: "auto" }, note),
    el("p", {}, t.taken({ types: names, limit: formatBytes(limit) })), room,
    files, tree, actions,
    el("p", { class: "aside" }, t.until, " ", timeText(until)),
  ] };
}

const pathOf = ({ address }) => `${address.replace("/api/v1", "")}/files`;
const isFull = ({ files_left: files, bytes_left: bytes }) => files < 1 || bytes < 1;

/** Where the files go, for `addUploads`. `draw(about)` shows what the link takes, whenever that has changed. */
function targetOf(about, { address, ask, refresh }, draw) {
  let now = about;
  let isFresh = true;
  const fits = ({ size }) => !isFull(now) && size <= now.bytes_left;
  const lookAgain = async () => {
    now = await aboutOf(address, ask);
    isFresh = true;
    if (now) draw(now);
    else refresh();
  };
  const check = async (file) => {
    if (now && !fits(file) && !isFresh) await lookAgain();
    if (!now) throw new ApiError({ status: 404, reason: "LINK_NOT_FOUND" });
    if (!fits(file)) throw new ApiError({ status: 507 });
  };
  const stored = ({ size, mayBeStored }) => {
    isFresh = false;
    if (mayBeStored) return lookAgain().catch(() => {}); // it may have been counted before
    if (now) draw(now = { ...now, files_left: now.files_left - 1, bytes_left: now.bytes_left - size });
  };
  const why = async (transfer, { status }) => {
    const isCounted = () => begunAs(transfer) || fits(transfer);
    if (now && (status === 404 || (status === 507 && isCounted()))) await lookAgain().catch(() => {});
    if (status !== 507 || !now) return null;
    if (isCounted()) return t.no_room;
    return isFull(now) ? t.full : t.too_large({ bytes: formatBytes(now.bytes_left) });
  };
  draw(now);
  return { path: pathOf({ address }), isOpen: true, check, stored, why, lookAgain };
}
