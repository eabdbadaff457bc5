// All links to files of the signed-in user, with what they lead to.

import { get } from "../api.js";
import { buttonLink, load, pageHead } from "../controls.js";
import { el, nameText } from "../dom.js";
import { linkColumns } from "../file-links.js";
import { table } from "../tables.js";
import { oneFile } from "../texts/one-file.js";

const t = oneFile.all_links;

export function show({ leaving: signal }) {
  const place = el("div", { class: "brief-list" });
  const refresh = () => load(place, {
    signal,
    waiting: list.waiting(8),
    work: () => get("/links", {}, signal),
    show: ({ links }) => list.show(links),
  });
  const file = { label: t.file, main: true, cell: ({ file_id: id, filename }) =>
    el("a", { class: "clamp", href: `/console/files/${id}` }, nameText(filename)) };
  const list = table({
    caption: t.caption,
    columns: [file, ...linkColumns(refresh)],
    empty: { title: oneFile.links.none_title, text: t.none, action: buttonLink(t.to_files, "/console/files") },
  });
  refresh();
  return { element: el("div", {}, pageHead(oneFile.links.title, { lead: t.lead }), place), update: refresh };
}
