// The boxes with which files of a list are selected: one in each row, where Shift selects a range, and one for all of
// the page.

import { el } from "./dom.js";
import { texts } from "./texts.js";

const t = texts.files.selection;

/**
 * Answers `{ column, show(answer), add(files), files(), clear(), unpicked() }`: the column for `table`; `show` is told
 * the API's answer whenever its files have been drawn. What has left the page by then is not selected any more.
 * `unpicked` answers how often the person has taken files out. `changed({ files, total })` is told the selected files,
 * and how many the list has if it has more pages.
 */
export function picks(changed) {
  const picked = new Map();
  let page = new Map();
  let total = 0;
  let last = null;
  let unpicked = 0;
  const all = el("input", { type: "checkbox", "aria-label": t.page, on: {
    click: () => set([...page.keys()], all.checked),
  } });
  const files = () => [...picked.values()];
  const draw = () => {
    for (const box of all.closest("table").querySelectorAll("tbody .pick input")) box.checked = picked.has(box.value);
    const count = [...page.keys()].filter((id) => picked.has(id)).length;
    all.checked = count > 0 && count === page.size;
    all.indeterminate = count > 0 && count < page.size;
    changed({ files: files(), total: total > page.size ? total : 0 });
  };
  const add = (some) => {
    for (const file of some) picked.set(file.id, file);
    draw();
  };
  const set = (ids, isPicked) => {
    if (isPicked) return add(ids.map((id) => page.get(id)));
    unpicked += 1;
    for (const id of ids) picked.delete(id);
    return draw();
  };
  const pick = ({ target: { value, checked }, shiftKey }) => {
    const ids = [...page.keys()];
    const ends = [ids.indexOf(value), shiftKey && page.has(last) ? ids.indexOf(last) : ids.indexOf(value)];
    last = value;
    set(ids.slice(Math.min(...ends), Math.max(...ends) + 1), checked);
  };
  const cell = ({ id, filename: name }) => labelled(el("input", { type: "checkbox", value: id, checked: picked.has(id),
    "aria-label": t.one({ name }), "data-key": `pick-${id}`, on: { click: pick } }));
  const show = (answer) => {
    const now = new Map(answer.items.map((file) => [file.id, file]));
    for (const id of page.keys()) if (!now.has(id)) picked.delete(id);
    page = now;
    total = answer.total;
    add([...now.values()].filter(({ id }) => picked.has(id)));
  };
  const clear = () => {
    unpicked += 1;
    picked.clear();
    draw();
  };
  const column = { label: t.page, hideLabel: true, head: labelled(all), cell };
  return { column, show, add, files, clear, unpicked: () => unpicked };
}

/** A box with room around it for fingers. Shift would select the text between two of them as well. */
const labelled = (box) => el("label", { class: "pick", on: {
  mousedown: (event) => event.shiftKey && event.preventDefault(),
} }, box);
