// What the lists of files and the page of a file do: downloading, deleting and restoring. Whenever this tab has deleted
// or restored files, there is an event `files`.
//
// A download is received by this page and then saved, so its token stays in a header. Browsers keep what is received
// on disk, so a file need not fit into memory.

import { del, download, post } from "./api.js";
import { button } from "./controls.js";
import { confirmDialog } from "./dialogs.js";
import { el, focusOn, nameText } from "./dom.js";
import { ApiError } from "./errors.js";
import { service } from "./limits.js";
import { notify } from "./notices.js";
import { save } from "./save.js";
import { texts } from "./texts.js";
import { addTransfers, dismiss, transferChanged } from "./transfers.js";

const t = texts.files;
/** Milliseconds after which a download is shown beside the uploads. Most are done by then. */
const LISTED_AFTER = 800;

/**
 * Downloads a file, given by the API's metadata, and saves it under the name that is shown. Is done when the file has
 * been saved or the download is shown in the list of transfers; throws what goes wrong before.
 */
export async function downloadFile(file) {
  const transfer = {
    kind: "download",
    name: file.filename,
    size: file.file_size,
    file,
    isHidden: true,
    cancel() {
      transfer.state = "failed";
      transfer.stop.abort();
    },
    again: () => receive(transfer).catch(() => {}),
  };
  const received = receive(transfer);
  addTransfers([transfer]);
  try {
    await Promise.race([received, new Promise((resolve) => { setTimeout(resolve, LISTED_AFTER); })]);
  } finally {
    if (transfer.state !== "running") dismiss([transfer]);
  }
  transfer.isHidden = false;
  transferChanged();
  received.catch(() => {});
}

async function receive(transfer) {
  Object.assign(transfer, { state: "running", moved: 0, error: "", stop: new AbortController() });
  transferChanged(transfer);
  const progress = (moved) => {
    transfer.moved = moved;
    transferChanged(transfer);
  };
  try {
    const path = `/uploads/${transfer.file.id}/download`;
    const { contents } = await download(path, { progress, signal: transfer.stop.signal });
    save(contents, transfer.name);
    Object.assign(transfer, { state: "done", moved: transfer.size });
  } catch (error) {
    if (transfer.state === "running") Object.assign(transfer, { state: "failed", error: error.message });
    throw error;
  } finally {
    transferChanged(transfer);
  }
}

/**
 * Deletes a file after a question; answers whether it was. One that is gone already was. With `permanently` nobody can
 * restore it, and it may be one that was deleted before.
 */
export async function deleteFile({ id, filename: name }, { permanently = null } = {}) {
  const isForGood = permanently || service.trashDays === 0;
  const words = isForGood ? t.delete_for_good : t.delete;
  const isDeleted = await confirmDialog(words.title, el("span", {}, nameText(name), words.text(service)), {
    label: words.label,
    busy: words.busy,
    danger: true,
    act: () => del(`/uploads/${id}`, { query: { permanently } }).catch((error) => {
      if (error.reason !== "FILE_NOT_FOUND") throw error;
    }),
  });
  if (!isDeleted) return false;
  const undo = !isForGood && button(t.restore.undo, {
    kind: "quiet",
    "aria-label": t.restore.undo_of({ name }),
    act: async () => {
      await restoreFile({ id, filename: name });
      notice.remove();
      if (document.activeElement === document.body) focusOn(null, { preventScroll: true });
    },
  });
  const notice = notify(words.done({ name }), { action: undo });
  dispatchEvent(new Event("files"));
  return true;
}

/** Restores a deleted file. */
export async function restoreFile({ id, filename: name }) {
  try {
    await post(`/uploads/${id}/restore`);
  } catch (error) {
    throw error.reason === "FILE_NOT_FOUND" ? new ApiError({ status: 404, detail: t.restore.gone({ name }) }) : error;
  } finally {
    dispatchEvent(new Event("files"));
  }
  notify(t.restore.done({ name }));
}

/**
 * Restores what was deleted at a moment of the API or later, as far as there is room for it; answers how many files
 * it restored, and how many are `left`. The service restores many files in several requests.
 */
export async function restoreSince(moment) {
  let restored = 0;
  try {
    for (;;) {
      const answer = await post("/uploads/restore", { deleted_since: moment });
      restored += answer.restored;
      if (answer.left === 0 || answer.restored === 0) return { restored, left: answer.left };
    }
  } finally {
    dispatchEvent(new Event("files"));
  }
}
