// Forms of filters above lists. The address holds what is set, so that it can be linked to.

import { begin, button } from "./controls.js";
import { el, replace } from "./dom.js";
import { ApiError } from "./errors.js";
import { field } from "./forms.js";
import { notifyError } from "./notices.js";
import { setQuery, withQuery } from "./router.js";
import { texts } from "./texts.js";

const t = texts.admin;

/**
 * A row of fields, whose `name`s are those of the address's query. Options:
 * - `label`: what the form is for; `fields`: descriptions as in `forms.js`, and `isWide`;
 * - `also`: names of the query that another filter takes away, such as `page`;
 * - `shown(name, text)`: what a field shows for a text of the query; `sent(name, text)`: the text of the query for what
 *   was typed, which may be a promise, and throw an `ApiError` for the field. Both leave it as it is unless told.
 *
 * Answers `{ element, set(query) }`; `set` shows what the query holds.
 */
export function filters({ label, fields, also = [], shown = (name, text) => text, sent = (name, text) => text }) {
  const made = fields.map(({ isWide, ...description }) => {
    const item = field({ optional: false, autocomplete: "off", ...description });
    item.element.classList.toggle("is-wide", Boolean(isWide));
    return item;
  });
  const apply = button(t.apply, { type: "submit" });
  const clear = el("div", {});
  const className = made.length > 4 ? "toolbar is-many" : "toolbar";
  const element = el("form", { class: className, role: "search", "aria-label": label, novalidate: true },
    made.map((item) => item.element), apply, clear);
  const none = Object.fromEntries([...made.map(({ name }) => name), ...also].map((name) => [name, null]));
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const half = made.find(({ input }) => input.validity.badInput);
    if (half) return showError(made, new ApiError({ status: 422, fields: { [half.name]: t.incomplete } }));
    const finish = begin(apply, t.applying);
    if (!finish) return;
    try {
      const values = await Promise.all(made.map(async ({ name, value }) => [name, await sent(name, value())]));
      if (!element.isConnected) return; // another page was gone to meanwhile
      setQuery({ ...none, ...Object.fromEntries(values) });
    } catch (error) {
      showError(made, error);
    } finally {
      finish();
    }
  });
  const set = (query) => {
    for (const item of made) {
      item.error("");
      item.set(shown(item.name, query.get(item.name) ?? ""));
    }
    const isSet = made.some(({ name }) => query.has(name));
    replace(clear, isSet && el("a", { class: "button quiet", href: withQuery(none) }, t.clear));
  };
  return { element, set };
}

function showError(made, error) {
  const wrong = made.find(({ name }) => error instanceof ApiError && error.fields[name]);
  if (!wrong) return notifyError(error);
  wrong.error(error.fields[wrong.name]);
  wrong.input.focus();
}
