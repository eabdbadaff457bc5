// What the service offers and takes, by its OpenAPI document: endpoints, types of files, and how much room a user has.

let asked = null;

/**
 * Whether the service has an endpoint with this path below `/api/v1`, in its present settings; `true` where the
 * document cannot be had, because the endpoint itself says so as well.
 */
export async function isOffered(path) {
  const document = await openApi();
  return !document || `/api/v1${path}` in document.paths;
}

/**
 * `{ types, fileBytes, userBytes, userFiles }`, or `null` where the operator has switched the document off, or where it
 * cannot be had at the moment.
 */
export async function serviceLimits() {
  const document = await openApi();
  if (!document) return null;
  const upload = document.paths["/api/v1/uploads"].post;
  if (!upload["x-limits"]) return null;
  const { file_bytes: fileBytes, user_bytes: userBytes, user_files: userFiles } = upload["x-limits"];
  const { contentType } = upload.requestBody.content["multipart/form-data"].encoding.file;
  return {
    types: contentType.split(",").map((type) => type.trim()),
    fileBytes: Number(fileBytes),
    userBytes: Number(userBytes),
    userFiles: Number(userFiles),
  };
}

/** The document, asked for once; `null` where it cannot be had, and then it is asked for again the next time. */
function openApi() {
  asked ??= ask().catch(() => {
    asked = null;
    return null;
  });
  return asked;
}

async function ask() {
  const response = await fetch("/openapi.json", { credentials: "omit", signal: AbortSignal.timeout(30_000) });
  if (response.status === 404) return null; // switched off
  if (!response.ok) throw new Error(`The OpenAPI document cannot be had: ${response.status}.`);
  return response.json();
}
