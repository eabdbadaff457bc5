// One file: what it is, changing, downloading and deleting it, and its links. Files of others are shown without what
// only their owner may do.

import { ApiError, currentUser, getTagged, put } from "../api.js";
import { button, copyButton, errorBox, iconButton, load, pageHead, section, skeleton } from "../controls.js";
import { append, el, icon, nameText, replace } from "../dom.js";
import { act } from "../file-actions.js";
import { formatBytes, formatNumber, timeText } from "../format.js";
import { changes, field, form } from "../forms.js";
import { notify, setTitle } from "../frame.js";
import { previewSection } from "../preview.js";
import { go, wayBack } from "../router.js";
import { typeName } from "../texts/file-types.js";
import { oneFile } from "../texts/one-file.js";
import { linksSection } from "./links.js";

const t = oneFile.page;

export function show({ params, leaving }) {
  const head = pageHead(t.loading);
  const place = el("div", {});
  load(place, {
    signal: leaving,
    waiting: skeleton(8),
    work: () => find(params.id, leaving),
    show: (found) => shownFile(found, head, leaving),
  });
  const back = el("p", { class: "back small" }, el("a", { href: wayBack("/console/files") }, icon("left"), t.all));
  return el("div", {}, back, head, place);
}

/** The metadata of a file, with its version. What cannot be the id of a file is that of none. */
async function find(id, signal) {
  try {
    return await getTagged(`/uploads/${encodeURIComponent(id)}`, { signal });
  } catch (error) {
    throw error.status === 422 ? new ApiError({ status: 404, reason: "FILE_NOT_FOUND" }) : error;
  }
}

function shownFile(found, head, signal) {
  const file = found.answer;
  const isOwn = file.user_id === currentUser()?.id;
  const facts = el("dl", { class: "facts" });
  const rename = isOwn && iconButton(t.rename, "pencil", { on: { click: () => act("rename", [current]) } });
  let current = file;
  const draw = (changed) => {
    current = changed;
    replace(head.querySelector("h1"), nameText(changed.filename), rename && [" ", rename]);
    setTitle(changed.filename);
    replace(facts, factsOf(changed));
  };
  const share = isOwn && button(t.share, { kind: "primary", drawing: "link",
    on: { click: () => act("link", [current]) } });
  const save = button(t.download, { kind: isOwn ? "" : "primary", drawing: "download", busy: t.downloading,
    act: () => act("download", [current]) });
  const remove = isOwn && iconButton(t.delete, "trash", { kind: "danger", on: { click: async () => {
    if (await act("delete", [current]) && !signal.aborted) go(wayBack("/console/files"), { replace: true });
  } } });
  append(replace(head.querySelector(".actions")), share, save, remove);
  draw(file);
  const about = el("section", { class: "section" }, facts, hashOf(file));
  const page = (...parts) => el("div", { class: "file-page" }, previewSection(file, signal),
    el("div", { class: "file-side" }, about, parts));
  if (!isOwn) {
    const text = el("p", { class: "description", dir: "auto" }, file.description);
    return [el("p", { class: "note" }, t.foreign), page(file.description && section(t.description, {}, text))];
  }
  const description = descriptionForm(found, draw, signal);
  addEventListener("files", async () => {
    const latest = await find(file.id, signal).catch(() => null); // it may have been deleted
    if (latest && !signal.aborted) description.follow(latest);
  }, { signal });
  const everyone = section(t.everyone, {}, everyoneOf(file, description.follow));
  return page(linksSection(file, signal), everyone, el("section", { class: "section" }, description.element));
}

/** Whether everyone who is signed in may read the file, which is saved at once, with its address for them. */
function everyoneOf(file, follow) {
  const { element, input, value, set } = field({ name: "is_public", label: t.is_public, type: "checkbox",
    hint: t.is_public_hint, value: file.is_public });
  const address = el("p", { hidden: !file.is_public },
    copyButton(`${location.origin}/console/files/${file.id}`, t.copy_address));
  const said = el("div", {});
  input.addEventListener("change", async () => {
    const wanted = value();
    replace(said);
    try {
      follow(await put(`/uploads/${file.id}`, { is_public: wanted }, { tagged: true }));
      notify(wanted ? t.now_public : t.now_private);
    } catch (error) {
      set(!wanted);
      replace(said, errorBox(error));
    }
    address.hidden = !value();
  });
  return el("div", { class: "stack" }, element, said, address);
}

function hashOf({ file_hash: hash }) {
  const plain = hash.replace("sha256:", "");
  return el("details", { class: "more" }, el("summary", {}, t.more),
    el("p", {}, t.hash, " ", el("span", { class: "code" }, plain), " ", copyButton(plain)));
}

function factsOf(file) {
  const fact = (label, ...content) => [el("dt", {}, label), el("dd", {}, content)];
  return [
    fact(t.type, typeName(file.content_type, file.filename)),
    fact(t.size, formatBytes(file.file_size), file.file_size >= 1024 && ` (${t.bytes({
      bytes: formatNumber(file.file_size) })})`),
    file.folder && fact(t.folder, el("a", {
      href: `/console/files?${new URLSearchParams({ folder: file.folder })}` }, nameText(file.folder))),
    fact(t.uploaded, timeText(file.upload_date), file.received_by && ` (${t.received})`),
    file.updated_at !== file.upload_date && fact(t.changed, timeText(file.updated_at)),
    file.original_filename !== file.filename && fact(t.sent_as, nameText(file.original_filename)),
  ];
}

/**
 * The form of the description. What somebody else has changed since the version that it began with is shown, and saved
 * over the next time. `follow` takes over a newer version in which only other things are new.
 */
function descriptionForm(found, draw, signal) {
  let stored = found;
  const path = `/uploads/${found.answer.id}`;
  const text = ({ answer }) => answer.description ?? "";
  const send = async (changed) => {
    stored = await put(path, changed, { tag: stored.tag, tagged: true });
  };
  const merge = async (changed) => {
    const before = text(stored);
    stored = await find(found.answer.id, signal);
    draw(stored.answer);
    const theirs = text(stored);
    if (![before, changed.description].includes(theirs)) {
      throw new ApiError({ status: 422, fields: { description: t.changed_meanwhile({ value: theirs }) } });
    }
    await send(changed);
  };
  const { element } = form({
    fields: [
      { name: "description", label: t.description, type: "textarea", value: found.answer.description, maxlength: 4096 },
    ],
    label: t.save,
    kind: "",
    keeps: true,
    busy: t.saving,
    submit: async (values) => {
      const changed = changes(stored.answer, values);
      await send(changed).catch((error) => {
        if (error.reason !== "PRECONDITION_FAILED") throw error;
        return merge(changed);
      });
      if (!signal.aborted) draw(stored.answer);
      notify(t.saved);
    },
  });
  const follow = (latest) => {
    draw(latest.answer);
    if (text(latest) === text(stored)) stored = latest;
  };
  return { element, follow };
}
