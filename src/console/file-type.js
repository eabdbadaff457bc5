// The types of files: the one under which a file is uploaded, and those of which there are previews.

/** Bytes that are looked at. */
const LOOKED_AT = 4096;

/** Pictures of pixels that browsers show. SVG is not one of them: it is a document. */
const PICTURES = ["apng", "avif", "bmp", "gif", "jpeg", "png", "webp"].map((kind) => `image/${kind}`);

/** What kind of preview there is of a file, by the type that the API gives it. */
export const isPicture = ({ content_type: type }) => PICTURES.includes(type);
export const isText = ({ content_type: type }) => type.startsWith("text/") || type === "application/json";

/** What is declared where the browser knows no type: the service finds it out. */
export const UNKNOWN = "application/octet-stream";

/** Whether an entry of the list of types takes more than one, as `image/*` and `any` do. */
export const isPattern = (type) => type === "any" || type.endsWith("/*");

/** Whether the service takes a type. */
export const isTaken = (type, { types, spellings }) =>
  spellings.includes(type) ||
  types.some((one) => isPattern(one) && (one === "any" || one === "*/*" || type.startsWith(one.slice(0, -1))));

/**
 * The browser's type for a file. One that begins as UTF-8 text, as an empty file does, is `text/plain` where the
 * browser knows no type, and where it knows a kind of text that the service does not take (RFC 2046, 4.1.4: kinds of
 * text that a receiver does not know are plain text to it). Throws where the file cannot be read any more.
 */
export async function declaredType(file, service) {
  const bytes = new Uint8Array(await file.slice(0, LOOKED_AT).arrayBuffer());
  const isOtherText = file.type.startsWith("text/") && !isTaken(file.type, service);
  if (areText(bytes) && (!file.type || (isOtherText && isTaken("text/plain", service)))) return "text/plain";
  return file.type || UNKNOWN;
}

function areText(bytes) {
  try {
    // As a stream, so that a character which the end of `bytes` cuts in two is no error.
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return !bytes.includes(0);
  } catch {
    return false;
  }
}
