// All links to files of the signed-in user, with what they lead to.

import { buttonLink, pageHead } from "../controls.js";
import { el } from "../dom.js";
import { linkList } from "../file-links.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.all_links;

export function show({ leaving }) {
  const empty = { title: oneFile.links.none_title, text: t.none, action: buttonLink(t.to_files, "/console/files") };
  const { element, refresh } = linkList({ caption: t.caption, empty }, leaving);
  return { element: el("div", {}, pageHead(oneFile.links.title, { lead: t.lead }), element), update: refresh };
}
