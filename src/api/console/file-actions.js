// What the list of files and the page of a file both do: downloading and deleting.
//
// A download is received by this page and then saved, so its token stays in a header. Browsers keep what is received
// on disk, so a file need not fit into memory.

import { del, download } from "./api.js";
import { confirmDialog } from "./dialogs.js";
import { el, nameText } from "./dom.js";
import { notify } from "./notices.js";
import { save } from "./save.js";
import { texts } from "./texts.js";
import { addTransfers, dismiss, transferChanged } from "./transfers.js";

const t = texts.files.delete;
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

/** Deletes a file after a question; answers whether it was. One that is gone already was. */
export async function deleteFile({ id, filename: name }) {
  const isDeleted = await confirmDialog(t.title, el("span", {}, nameText(name), t.text), {
    label: t.label,
    busy: t.busy,
    danger: true,
    act: () => del(`/uploads/${id}`).catch((error) => {
      if (error.reason !== "FILE_NOT_FOUND") throw error;
    }),
  });
  if (isDeleted) notify(t.done({ name }));
  return isDeleted;
}
