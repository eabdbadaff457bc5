// Forms: fields with their labels, hints and errors, and one button that sends them once.

import { ApiError } from "./api.js";
import { begin, button, errorParts } from "./controls.js";
import { el, replace, uniqueId } from "./dom.js";
import { texts } from "./texts.js";

/**
 * A form. Options:
 * - `fields`: descriptions of fields or fields (see `field`), or nodes, which stand between them as they are;
 * - `label`, `busy`: the texts of its button; `kind`: the button's, `primary` unless told; `extra`: nodes beside it;
 * - `submit(values)`: sends the values (texts trimmed, passwords as they are, numbers as numbers or `null`, boxes as
 *   booleans). What it throws is shown: at the fields that the API names, the rest above the button. After a 429 or 503
 *   the button waits as long as the API says;
 * - `keeps`: what was typed is worth a question before the page is left without sending it.
 *
 * Answers `{ element, field(name), isTyped() }`; `isTyped` says whether anything was typed since the form was sent.
 */
export function form(/** @type {any} */ { fields, label, busy, submit, kind = "primary", extra, keeps = false }) {
  const made = new Map();
  const nodes = fields.map((description) => {
    if (description instanceof Node) return description;
    made.set(description.name, description.element ? description : field(description));
    return made.get(description.name).element;
  });
  const problem = el("div", { class: "form-error", role: "alert" });
  const send = button(label, { kind, type: "submit", "data-key": label });
  const element = el("form", { novalidate: true, class: "form" },
    nodes, problem, el("div", { class: "form-actions" }, send, extra));
  const values = () => Object.fromEntries(shown(made).map(({ name, sentAs = name, value }) => [sentAs, value()]));
  let saved = null;
  /** The names of the fields in which something was typed since the form was sent. */
  const typed = new Set();
  element.addEventListener("input", ({ target }) => {
    for (const item of made.values()) if (item.element.contains(target)) typed.add(item.name);
  });
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const finish = begin(send, busy);
    if (!finish) return;
    replace(problem);
    try {
      if (complete(made)) {
        const sent = values();
        typed.clear();
        await submit(sent);
        // The page may have put other values into fields, but what the person has typed meanwhile is not saved.
        const stored = values();
        for (const name of typed) if (name in stored) stored[name] = sent[name];
        saved = keeps && JSON.stringify(stored);
      }
      finish();
    } catch (error) {
      finish();
      showFailure(error, { made, problem, send });
    }
  });
  // What is in the fields before the person comes to them is no change of theirs.
  element.addEventListener("focusin", () => { saved ??= keeps && JSON.stringify(values()); });
  changed.set(element, () => saved && saved !== JSON.stringify(values()));
  return { element, field: (name) => made.get(name), isTyped: () => typed.size > 0 };
}

/** For each form whether it holds something that is worth keeping and has not been sent. */
const changed = new WeakMap();
export const hasChanges = () => [...document.forms].some((each) => changed.get(each)?.());

addEventListener("beforeunload", (event) => {
  if (hasChanges()) event.preventDefault();
});

/**
 * Those values of a form that differ from what is stored, where what is not there or `null` is an empty text. All ends
 * of lines are alike, because fields hold one kind of them, and blanks around a text do not count, because forms trim.
 */
export function changes(stored, values) {
  const held = (value) => (typeof value === "string" ? value.replace(/\r\n?/g, "\n").trim() : value ?? "");
  const differs = ([name, value]) => JSON.stringify(held(value)) !== JSON.stringify(held(stored[name]));
  return Object.fromEntries(Object.entries(values).filter(differs));
}

const shown = (made) => [...made.values()].filter((item) => !item.element.hidden);

/**
 * Whether each required field holds something, and none half a number or date; the first wrong one gets the focus. All
 * else is the service's to judge. Where it is not asked yet, what the browser knows to be wrong is said as well.
 */
function complete(made) {
  const items = shown(made);
  const isEmpty = (item) => item.required && (item.value() === "" || item.value() === null);
  const isHalf = ({ input }) => input.validity.badInput;
  const isComplete = !items.some((item) => isHalf(item) || isEmpty(item));
  for (const item of items) {
    const { type, minLength, validity } = item.input;
    const half = type === "number" ? texts.no_number : texts.incomplete;
    const known = validity.typeMismatch ? texts.no_email : validity.tooShort && texts.too_short({ minLength });
    item.error(isHalf(item) ? half : isEmpty(item) ? texts.required : !isComplete && known || "");
  }
  items.find(({ input }) => input.hasAttribute("aria-invalid"))?.input.focus();
  return isComplete;
}

function showFailure(error, { made, problem, send }) {
  if (error.name === "AbortError") return;
  const items = shown(made);
  const rest = [];
  const wrong = new Set();
  const mark = (item, sentence) => {
    item.error(sentence);
    wrong.add(item);
  };
  for (const [name, sentence] of Object.entries(error instanceof ApiError ? error.fields : {})) {
    const item = items.find((each) => each.name === name || each.names.includes(name));
    if (item) mark(item, sentence);
    else rest.push(sentence);
  }
  const atField = error.reason && items.find(({ reasons }) => reasons.includes(error.reason));
  if (atField) mark(atField, error.message);
  else if (!wrong.size || rest.length) {
    replace(problem, el("p", {}, rest.length ? rest.join(" ") : errorParts(error, { ended: () => replace(problem) })));
  }
  items.find((item) => wrong.has(item))?.input.focus();
  if (!error.retryAt || !error.status) return;
  send.setAttribute("aria-disabled", "true");
  setTimeout(() => send.removeAttribute("aria-disabled"), error.retryAt - Date.now());
}

/**
 * A field. `name` is the API's; `label`; `type`: any of `<input>`, `textarea`, `select` (with `options`, a list of
 * `[value, text]`) or `checkbox`; `value`; `hint`; `required`; `names`: other names that the API's errors use for it;
 * `reasons`: reasons of API errors that belong to this field; `isHidden`: not shown until `show(true)`, and its value
 * not sent; everything else is an attribute of the input.
 *
 * Answers `{ name, element, input, value(), set(value), error(sentence), show(boolean) }`. One that is made elsewhere
 * may have `sentAs`, the name under which its value is sent.
 */
export function field(/** @type {any} */ { name, label, type = "text", value, hint, required = false, options,
  names = [], reasons = [], isHidden = false, ...attributes }) {
  const id = uniqueId("field");
  const input = inputOf({ type, options, id, name, required, "data-key": name, ...attributes });
  const problem = el("p", { class: "field-error", id: `${id}-error`, "aria-live": "polite" });
  const help = hint && el("p", { class: "field-hint", id: `${id}-hint` }, hint);
  input.setAttribute("aria-describedby", `${help ? `${id}-hint ` : ""}${id}-error`);
  const caption = el("label", { for: id }, label, !required && type !== "checkbox" && attributes.optional !== false
    && el("span", { class: "optional" }, ` ${texts.optional}`));
  const element = type === "checkbox"
    ? el("div", { class: "field is-checkbox" }, input, caption, problem, help)
    : el("div", { class: "field" }, caption, wrapped(input, type), problem, help);
  const set = (content) => {
    if (type === "checkbox") input.checked = Boolean(content);
    else input.value = content ?? "";
  };
  if (value != null) set(value);
  const error = (sentence) => {
    const folded = sentence && input.closest("details");
    if (folded) folded.open = true;
    problem.textContent = sentence;
    if (sentence) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  input.addEventListener("input", () => error(""));
  const show = (isShown) => { element.hidden = !isShown; };
  show(!isHidden);
  return { name, element, input, required, names, reasons, value: () => valueOf(input, type), set, error, show };
}

function inputOf(/** @type {any} */ { type, options = [], optional, ...attributes }) {
  if (type === "textarea") return el("textarea", { rows: 4, dir: "auto", ...attributes });
  if (type === "select") return el("select", attributes, options.map(([value, text]) => el("option", { value }, text)));
  const dir = (type === "text" || type === "search") && "auto";
  return el("input", { type, dir, spellcheck: type === "password" && "false", ...attributes });
}

/** A password's field has a button beside it that shows what was typed. */
function wrapped(input, type) {
  if (type !== "password") return input;
  const toggle = el("button", { type: "button", class: "reveal", "aria-pressed": "false",
    "aria-label": texts.show_password }, texts.show);
  toggle.addEventListener("click", () => {
    const isShown = input.type === "password";
    input.type = isShown ? "text" : "password";
    toggle.setAttribute("aria-pressed", String(isShown));
  });
  return el("div", { class: "password" }, input, toggle);
}

function valueOf(input, type) {
  if (type === "checkbox") return input.checked;
  if (type === "password") return input.value;
  if (type === "number") return input.value === "" ? null : Number(input.value);
  return input.value.trim();
}
