/** Uploads a file and returns its metadata, with its id. */
async function upload(url: string, token: string, file: File, description: string) {
  const body = new FormData();
  body.append("file", file);
  body.append("description", description);
  const response = await fetch(`${url}/api/v1/uploads`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body,
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
