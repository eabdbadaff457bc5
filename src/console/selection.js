// The files of a list that are selected: a box in each row, where Shift selects a range, one for all of the page, and a
// bar that says how many are selected, with what can be done with them.

import { button, iconButton } from "./controls.js";
import { el, focusOn, replace } from "./dom.js";
import { ACTIONS, act } from "./file-actions.js";
import { formatNumber } from "./format.js";
import { files as fileTexts } from "./texts/files.js";

const t = fileTexts.selection;
/** Files that are asked for at once, and most of them, where those of further pages are selected too. */
const BATCH = 100;
const MOST = 1000;

/**
 * Answers `{ column, show(answer), clear(), files(), bar }`: the column for `table`; `show` is told the API's answer
 * whenever its files have been drawn; what has left the page by then is not selected any more. `bar` goes below
 * `tools`, which are hidden while it is shown, so that no row moves. `actions` are names of `ACTIONS`, and `ask({ page,
 * size })` answers another page of the list.
 */
export function selection({ tools, actions, ask = undefined }) {
  const count = el("p", { class: "selection-count", tabindex: "-1" });
  const said = el("p", { class: "visually-hidden", role: "status" });
  const more = button("", { kind: "quiet", act: () => picked.addPages(ask) });
  const end = (target) => {
    picked.clear();
    focusOn(target, { preventScroll: true });
  };
  const buttons = actions.map((name) => {
    const { drawing, kind, fits = () => true } = ACTIONS[name];
    const click = () => act(name, picked.files().filter(fits), () => end(null));
    return { fits, element: button(fileTexts.actions[name].label, { drawing, kind, on: { click } }) };
  });
  const clear = iconButton(t.clear, "close", { on: { click: () => end(picked.all) } });
  const bar = el("div", { class: "toolbar selection", role: "group", "aria-label": t.name, hidden: true },
    count, more, buttons.map(({ element }) => element), clear);
  const picked = picks((files, total) => {
    const before = bar.contains(document.activeElement) && document.activeElement;
    if (bar.hidden) bar.style.minHeight = `${tools.offsetHeight}px`;
    bar.hidden = files.length === 0;
    tools.hidden = !bar.hidden;
    replace(count, t.count({ count: formatNumber(files.length) }));
    replace(said, files.length > 0 && t.count({ count: formatNumber(files.length) }));
    const all = Math.min(total, MOST);
    more.hidden = all <= files.length;
    more.querySelector(".button-text").textContent = t.more({ count: formatNumber(all), isAll: all === total });
    for (const { fits, element } of buttons) element.hidden = !files.some(fits);
    if (before && !before.checkVisibility()) focusOn(count, { preventScroll: true });
  });
  return { column: picked.column, show: picked.show, clear: picked.clear, files: picked.files, bar: [bar, said] };
}

/** The boxes. `changed(files, total)` is told the selected files, and how many the list has if it has more pages. */
function picks(changed) {
  const picked = new Map();
  let page = new Map();
  let total = 0;
  let last = null;
  let unpicked = 0; // how often the person has taken files out
  const all = el("input", { type: "checkbox", "aria-label": t.page, on: {
    click: () => set([...page.keys()], all.checked),
  } });
  const files = () => [...picked.values()];
  const draw = () => {
    for (const box of all.closest("table").querySelectorAll("tbody .pick input")) box.checked = picked.has(box.value);
    const count = [...page.keys()].filter((id) => picked.has(id)).length;
    all.checked = count > 0 && count === page.size;
    all.indeterminate = count > 0 && count < page.size;
    changed(files(), total > page.size ? total : 0);
  };
  const add = (some) => {
    for (const file of some) picked.set(file.id, file);
    draw();
  };
  const addPages = async (ask) => {
    const before = unpicked;
    for (let number = 1, pages = MOST / BATCH; number <= Math.min(pages, MOST / BATCH); number += 1) {
      const answer = await ask({ page: number, size: BATCH });
      if (unpicked !== before) return; // the person does not want all of them any more
      add(answer.items);
      ({ pages } = answer);
    }
  };
  const remove = (ids) => {
    unpicked += 1;
    for (const id of ids) picked.delete(id);
    draw();
  };
  const set = (ids, isPicked) => (isPicked ? add(ids.map((id) => page.get(id))) : remove(ids));
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
    ({ total } = answer);
    add([...now.values()].filter(({ id }) => picked.has(id)));
  };
  const column = { label: t.page, hideLabel: true, head: labelled(all), cell };
  return { column, all, show, files, addPages, clear: () => remove([...picked.keys()]) };
}

/** A box with room around it for fingers. Shift would select the text between two of them as well. */
const labelled = (box) => el("label", { class: "pick", on: {
  mousedown: (event) => event.shiftKey && event.preventDefault(),
} }, box);
