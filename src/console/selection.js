// The bar that says how many files of a list are selected, with what can be done with them.

import { button, iconButton } from "./controls.js";
import { el, focusOn } from "./dom.js";
import { ACTIONS, act } from "./file-actions.js";
import { formatNumber } from "./format.js";
import { texts } from "./texts.js";

const t = texts.files.selection;

/**
 * Makes the bar in the place of `tools`, which are hidden while it is shown, so that no row moves. `actions` are names
 * of `ACTIONS`, `picked` what `picks` answers; `selectMore()` selects all files of the list, but at most about `most`.
 * Answers a function that is told what is selected.
 */
export function selectionBar({ tools, actions, picked, most, selectMore }) {
  const count = el("p", { class: "selection-count", tabindex: "-1" });
  const more = button("", { kind: "quiet", act: selectMore });
  const end = (target) => {
    picked.clear();
    focusOn(target, { preventScroll: true });
  };
  const buttons = actions.map((name) => {
    const { drawing, kind, fits = () => true } = ACTIONS[name];
    const click = () => act(name, picked.files().filter(fits), () => end(null));
    return { fits, element: button(texts.files.actions[name].label, { drawing, kind, on: { click } }) };
  });
  const clear = iconButton(t.clear, "close", { on: { click: () => end(picked.column.head.firstChild) } });
  const element = el("div", { class: "toolbar selection", role: "group", "aria-label": t.name, hidden: true },
    count, more, buttons.map((each) => each.element), clear);
  tools.after(element);
  return ({ files, total }) => {
    const before = element.contains(document.activeElement) && document.activeElement;
    if (element.hidden) element.style.minHeight = `${tools.offsetHeight}px`;
    element.hidden = files.length === 0;
    tools.hidden = !element.hidden;
    count.textContent = t.count({ count: formatNumber(files.length) });
    const all = Math.min(total, most);
    more.hidden = all <= files.length;
    more.querySelector(".button-text").textContent = t.more({ count: formatNumber(all), isAll: all === total });
    for (const { fits, element: each } of buttons) each.hidden = !files.some(fits);
    if (before && !before.checkVisibility()) focusOn(count, { preventScroll: true });
  };
}
