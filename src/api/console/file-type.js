// The types of files: the one under which a file is uploaded, and those of which there are previews.

/** Bytes that are looked at. */
const LOOKED_AT = 4096;

/** Pictures of pixels that browsers show. SVG is not one of them: it is a document. */
const PICTURES = ["apng", "avif", "bmp", "gif", "jpeg", "png", "webp"].map((kind) => `image/${kind}`);

/** What kind of preview there is of a file, by the type that the API gives it. */
export const isPicture = ({ content_type: type }) => PICTURES.includes(type);
export const isText = ({ content_type: type }) => type.startsWith("text/") || type === "application/json";

/**
 * The browser's type for a file. One that begins as UTF-8 text, as an empty file does, is `text/plain` where the
 * browser knows no type, and where it knows a kind of text that is not in `accepted` (RFC 2046, 4.1.4: kinds of text
 * that a receiver does not know are plain text to it). Throws where the file cannot be read any more.
 */
export async function declaredType(file, accepted) {
  const bytes = new Uint8Array(await file.slice(0, LOOKED_AT).arrayBuffer());
  const isOtherText = file.type.startsWith("text/") && !accepted.includes(file.type);
  if (areText(bytes) && (!file.type || (isOtherText && accepted.includes("text/plain")))) return "text/plain";
  return file.type || "application/octet-stream";
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
