// The files that people have opened to everyone who is signed in here, where the service lists them.

import { get } from "../api.js";
import { iconButton, load, pageHead } from "../controls.js";
import { el, nameText } from "../dom.js";
import { act } from "../file-actions.js";
import { momentCell, nameCell } from "../file-list.js";
import { formatBytes, formatNumber } from "../format.js";
import { withQuery } from "../router.js";
import { filters, pager, table } from "../tables.js";
import { files as fileTexts } from "../texts/files.js";

const t = { ...fileTexts.list, ...fileTexts.shared };
const LIMIT = 50;
/** Questions until a page without files is shown: the service looks at so many files for an answer, and no more. */
const MOST = 5;

const COLUMNS = [
  { label: t.name, main: true, cell: (file) => nameCell({ ...file, is_public: false },
    el("a", { href: `/console/files/${file.id}` })) },
  { label: t.owner, cell: ({ owner: { name } }) => el("span", { class: "clamp" }, name && nameText(name)) },
  { label: t.size, align: "end", cell: ({ file_size: size }) => formatBytes(size) },
  { label: t.uploaded, cell: ({ upload_date: moment }) => momentCell(moment) },
  { label: t.actions, hideLabel: true, cell: (file) => iconButton(t.download({ name: file.filename }), "download",
    { act: () => act("download", [file]) }) },
];

export function show(context) {
  const list = table({ caption: t.title, columns: COLUMNS, empty: { title: t.none_title, text: t.none } });
  const form = filters({ label: t.search, fields: [
    { name: "search", label: t.search, type: "search", placeholder: t.search_hint, isWide: true }] });
  const place = el("div", { class: "files-list" });
  const foot = pager();
  const update = ({ query, signal }) => {
    form.set(query);
    return load(place, { signal, waiting: list.waiting(10), work: () => find(query, signal),
      show: ({ files, next }) => [list.show(files), foot.show(steps(query, files, next))] });
  };
  update(context);
  const tools = el("div", { class: "list-tools" }, form.element);
  return { element: el("div", {}, pageHead(t.title, { lead: t.lead }), tools, place), update };
}

/** A page of the list, of as many answers as it takes to have a file on it. */
async function find(query, signal) {
  let after = query.get("before");
  for (let turn = 1; ; turn += 1) {
    const answer = await get("/uploads/public", { search: query.get("search"), limit: LIMIT, after }, signal);
    if (answer.files.length || !answer.next || turn === MOST) return answer;
    after = answer.next;
  }
}

/** The ways to older files, and back to the newest ones. */
function steps(query, { length: count }, next) {
  const way = (name, before) => el("a", { class: "button", href: withQuery({ before }) }, t.steps[name]);
  return { said: t.shown({ count: formatNumber(count) }), total: count,
    steps: [query.has("before") && way("newest", null), next && way("older", next)] };
}
