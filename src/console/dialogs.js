// Dialogs: `<dialog>` elements, which keep the focus inside and give it back.

import { button, errorBox, iconButton } from "./controls.js";
import { append, el, focusOn, replace, uniqueId } from "./dom.js";
import { form, hasChanges } from "./forms.js";
import { texts } from "./texts.js";

/** A button that works. One with `data-goes-on`, which begins what is seen elsewhere, does not keep a dialog open. */
const WORKING = ".is-busy:not([data-goes-on])";
/** What gets the focus in a dialog: what asks for it, else the first field, else the title. */
const FIRST = "[data-focus], .field :is(input:not([readonly]), select, textarea)";

/**
 * Shows a dialog with a title and whatever `body` holds. Answers `{ element, close(result), giveUp(), result }`, where
 * `result` is a promise of what `close` was given, `undefined` where the person gave up: by Escape, by the closing
 * button, or by another one that calls `giveUp`. None of these closes the dialog while a button works, because the
 * answer may be one that is not shown again. With `keep` only buttons in `body` close it, and it stays when the person
 * goes to another page.
 */
export function dialog(title, body, { keep = false, wide = false } = {}) {
  const titleId = uniqueId("dialog");
  const before = document.activeElement;
  let result;
  const element = el("dialog", { "aria-labelledby": titleId, class: wide ? "wide" : "", "data-keep": keep });
  const head = el("div", { class: "dialog-head" }, el("h2", { id: titleId, tabindex: "-1" }, title));
  const works = () => element.querySelector(WORKING) !== null;
  const stays = () => keep || works();
  const giveUp = () => works() || element.close();
  if (!keep) append(head, iconButton(texts.close, "close", { on: { click: giveUp } }));
  append(element, head, el("div", { class: "dialog-body" }, body));
  element.addEventListener("cancel", (event) => stays() && event.preventDefault());
  // Browsers do not heed the listener above when Escape is pressed a second time.
  const heedEscape = (event) => {
    const isTop = [...document.querySelectorAll("dialog")].at(-1) === element;
    if (event.key === "Escape" && isTop && stays()) event.preventDefault();
  };
  document.addEventListener("keydown", heedEscape, true);
  document.body.append(element);
  element.showModal();
  (element.querySelector(FIRST) ?? head.firstChild).focus();
  const close = (value) => {
    result = value;
    element.close();
  };
  return {
    element,
    close,
    giveUp,
    result: new Promise((resolve) => {
      element.addEventListener("close", () => {
        document.removeEventListener("keydown", heedEscape, true);
        element.remove();
        // Focus goes back to where it was or, where that is gone and nothing else has it, to the heading of the page.
        const isThere = before?.isConnected && before !== document.body;
        if (isThere || document.activeElement === document.body) focusOn(before);
        resolve(result);
      });
    }),
  };
}

/**
 * Closes the dialogs of a page that is left, without those with `keep` and those that work, whose answer may be one
 * that is not shown again; or `all` of them, where another person comes.
 */
export function closeDialogs({ all }) {
  const which = all ? "dialog" : `dialog:not([data-keep], :has(${WORKING}))`;
  for (const element of document.querySelectorAll(which)) /** @type {any} */ (element).close();
}

/**
 * Asks before something is done. `act` is done inside the dialog: its button says that it works, an error stands above
 * the buttons, and the dialog closes when it is done. Answers whether it was done.
 */
export function confirmDialog(title, text, /** @type {any} */ { label, busy, act, danger, cancel = texts.cancel }) {
  const problem = el("div", {});
  const go = button(label, {
    kind: danger ? "danger" : "primary",
    busy,
    act: async () => {
      replace(problem);
      await act();
      box.close(true);
    },
    failed: (error) => replace(problem, errorBox(error)),
  });
  const back = button(cancel, { on: { click: () => box.giveUp() }, "data-focus": true });
  const paragraphs = [text].flat().map((part) => el("p", {}, part));
  const box = dialog(title, [paragraphs, problem, el("div", { class: "dialog-actions" }, back, go)]);
  return box.result.then(Boolean);
}

/** What `submit` of a form in a dialog answers to keep the dialog open, as where it needs another field. */
export const STAY = Symbol("stay");

/**
 * A dialog with a form, whose options are those of `form`; the dialog closes when `submit` is done, and the promise
 * answers what `submit` answered, or `undefined` where the person gave up. `text` stands above the fields. Where the
 * options need the form itself, they are a function of one that answers the form.
 */
export function formDialog(title, described) {
  const { text, keep, cancel = texts.cancel, ...options } =
    typeof described === "function" ? described(() => made) : described;
  let box;
  const back = button(cancel, { on: { click: () => box.giveUp() } });
  const send = async (values) => {
    const answer = await options.submit(values);
    if (answer !== STAY) box.close(answer);
  };
  const made = form({ ...options, extra: back, submit: send });
  box = dialog(title, [[text ?? []].flat().map((part) => el("p", {}, part)), made.element], { keep });
  return box.result;
}

/** Asks before what was typed into the page is lost; answers whether the page may be left. */
export const mayLeave = async () => !hasChanges() || confirmDialog(texts.leave_title, texts.leave_text,
  { label: texts.leave, cancel: texts.stay, danger: true, act: () => {} });
