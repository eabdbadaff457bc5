// The types of files: the one under which a file is uploaded, and those of which there are previews.

/** Bytes that are looked at. */
const LOOKED_AT = 4096;

/** Pictures of pixels that browsers show. SVG is not one of them: it is a document. */
const PICTURES = ["apng", "avif", "bmp", "gif", "jpeg", "png", "webp"].map((kind) => `image/${kind}`);

/** What kind of preview there is of a file, by the type that the API gives it. */
export const isPicture = ({ content_type: type }) => PICTURES.includes(type);
export const isText = ({ content_type: type }) => type.startsWith("text/") || type === "application/json";
/** The element that plays it: `audio`, `video` or none. */
export const playerFor = ({ content_type: type }) => /^(audio|video)\//.exec(type)?.[1];
export const hasPreview = (file) => isPicture(file) || isText(file) || Boolean(playerFor(file));

/** What is declared where the browser knows no type: the service finds it out. */
export const UNKNOWN = "application/octet-stream";

/** Whether an entry of the list of types takes more than one, as `image/*` and `any` do. */
export const isPattern = (type) => type === "any" || type.endsWith("/*");

/** Whether the service takes a type. */
export const isTaken = (type, { types, spellings }) =>
  spellings.includes(type) ||
  types.some((one) => isPattern(one) && (one === "any" || one === "*/*" || type.startsWith(one.slice(0, -1))));

/** Kinds of text that are plain text to a service that does not take them (RFC 2046, 4.1.4). */
const KINDS_OF_TEXT = /^text\/|^application\/(x-)?(json|yaml|xml|javascript|ecmascript|sql|sh|shellscript)$/;

/**
 * The browser's type for a file, and where it knows none, one that lets the service find it out. Where the service does
 * not take the browser's, what begins as UTF-8 text, as an empty file does, is `text/csv` if Windows with Office calls
 * it a table of Excel, or `text/plain` if it is a kind of text. Throws where the file cannot be read any more.
 */
export async function declaredType(file, service) {
  const bytes = new Uint8Array(await file.slice(0, LOOKED_AT).arrayBuffer());
  if (!file.type || isTaken(file.type, service) || !areText(bytes)) return file.type || UNKNOWN;
  const isCsv = file.type === "application/vnd.ms-excel" && /\.csv$/i.test(file.name);
  const others = [isCsv && "text/csv", (isCsv || KINDS_OF_TEXT.test(file.type)) && "text/plain"];
  return others.find((type) => type && isTaken(type, service)) ?? file.type;
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
