// The service's QR codes as pictures.

import { el } from "./dom.js";

/**
 * The picture of a QR code, at most `widest` pixels wide, which unless told fits a page of 320. As an image the SVG can
 * neither run scripts nor load anything.
 */
export function qrPicture(picture, alt, widest = 278) {
  // Cameras read modules that are all of one size, so each is a whole number of pixels wide.
  const modules = Number(/viewBox="0 0 (\d+) /.exec(picture)[1]);
  const width = modules * Math.floor(widest / modules);
  const src = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  return el("img", { class: "qr", src, alt, width, height: width });
}
