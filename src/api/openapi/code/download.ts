/** Returns the bytes of a file from number `first` on: all of them, or the rest after an interruption. */
async function download(url: string, token: string, fileId: string, first = 0) {
  const response = await fetch(`${url}/api/v1/uploads/${fileId}/download`, {
    headers: { Authorization: `Bearer ${token}`, Range: `bytes=${first}-` },
  });
  if (response.status === 416) return new Blob(); // Nothing is missing.
  if (!response.ok) throw new Error(await response.text());
  return response.blob();
}
