// What people call the types of files.

const OFFICE = "application/vnd.openxmlformats-officedocument.";
const OPEN_DOCUMENT = "application/vnd.oasis.opendocument.";
const NAMES = {
  "*/*": "Files of any type", any: "Files of any type", "application/epub+zip": "EPUB book",
  "application/gzip": "Gzip archive", "application/json": "JSON", "application/msword": "Word document",
  "application/pdf": "PDF", "application/rtf": "RTF document", "application/vnd.ms-excel": "Excel table",
  "application/vnd.ms-powerpoint": "PowerPoint presentation",
  [`${OPEN_DOCUMENT}presentation`]: "OpenDocument presentation",
  [`${OPEN_DOCUMENT}spreadsheet`]: "OpenDocument spreadsheet", [`${OPEN_DOCUMENT}text`]: "OpenDocument text",
  [`${OFFICE}presentationml.presentation`]: "PowerPoint presentation",
  [`${OFFICE}spreadsheetml.sheet`]: "Excel table", [`${OFFICE}wordprocessingml.document`]: "Word document",
  "application/vnd.rar": "RAR archive", "application/x-7z-compressed": "7-Zip archive",
  "application/x-rar-compressed": "RAR archive", "application/x-tar": "Tar archive", "application/zip": "ZIP archive",
  "audio/*": "Audio", "audio/mp4": "M4A audio", "audio/mpeg": "MP3 audio", "image/*": "Pictures",
  "image/webp": "WebP picture", "text/*": "Text of any kind", "text/csv": "CSV table", "text/html": "HTML page",
  "text/markdown": "Markdown text", "text/plain": "Text", "text/rtf": "RTF document", "video/*": "Video",
  "video/quicktime": "MOV video", "video/webm": "WebM video", "video/x-matroska": "MKV video",
  "video/x-msvideo": "AVI video",
};
/** Kinds whose types are called as in their names, such as `audio/x-wav`. */
const KINDS = { audio: "audio", image: "picture", video: "video" };

/** A media type as people call it, or else by the ending of the file's name, such as "DWG file", or as it is. */
export function typeName(type, filename = "") {
  const [, kind, name] = /^(audio|image|video)\/(?:x-)?([a-z0-9]{2,4})(?:\+xml)?$/.exec(type) ?? [];
  const [, ending] = /[^.]\.([a-z0-9]{1,8})$/i.exec(filename) ?? [];
  const known = NAMES[type] ?? (kind && `${name.toUpperCase()} ${KINDS[kind]}`);
  return known ?? (ending ? `${ending.toUpperCase()} file` : type);
}
