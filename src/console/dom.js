// How elements are made. Texts become text nodes, never HTML, so whatever a name holds is shown and not executed.

let lastId = 0;

/**
 * Makes an element. `attributes` may hold `on` (`{ click: function }`) and any attribute by its name; `true` sets one
 * without a value, `false`, `null` and `undefined` leave it out.
 * Children are nodes, texts, numbers, or lists of these; `null`, `undefined` and `false` are left out.
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Makes an SVG element, as `el` does. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    } else if (name === "href" || name === "src") {
      element.setAttribute(name, safeAddress(value));
    } else if (value !== false && value != null) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  return append(element, children);
}

/** Appends nodes, texts and numbers, as `el` does. */
export function append(element, ...children) {
  element.append(...nodesOf(children));
  return element;
}

/** Replaces all that an element holds. What it holds already stays where it is, with the focus and the selection. */
export function replace(element, ...children) {
  const nodes = nodesOf(children);
  const kept = new Set(nodes);
  for (const child of [...element.childNodes]) if (!kept.has(child)) child.remove();
  nodes.forEach((node, index) => {
    const there = element.childNodes[index] ?? null;
    if (there !== node) element.insertBefore(node, there);
  });
  return element;
}

function nodesOf(children) {
  const given = children.flat(Infinity).filter((child) => child != null && child !== false);
  return given.map((child) => (child instanceof Node ? child : document.createTextNode(child)));
}

/** Gives the focus to an element, or to the heading of the page where that is not there any more. It is never lost. */
export function focusOn(element, options) {
  const isThere = element?.checkVisibility() && element !== document.body;
  (isThere ? element : document.querySelector("h1"))?.focus(options);
}

/** Whether the person is in a field, out of which what comes late may not take them. */
export const isInField = () => document.activeElement?.matches("input, select, textarea") ?? false;

/** An identifier that no other element of the page has. */
export function uniqueId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/**
 * The address itself where it is one of this origin's pages or links, a fragment, or contents made by this page
 * (`blob:`, `data:image/`). Anything else, such as `javascript:`, becomes `#`: addresses may come from data.
 */
function safeAddress(address) {
  if (/^(#|blob:|data:image\/)/.test(address)) return address;
  const isOwn = URL.canParse(address, location.origin) && new URL(address, location.origin).origin === location.origin;
  return isOwn ? address : "#";
}

/** A text that only screen readers get. */
export const hiddenText = (text) => el("span", { class: "visually-hidden" }, text);

/** A text that a person chose, kept apart from what surrounds it whatever direction it is written in. */
export const nameText = (text) => el("bdi", {}, text);

const ICONS = {
  files: "M3.5 2h5.5l3.5 3.5V14h-9z M9 2v3.5h3.5",
  folder: "M2 4.5h4.5l1.5 1.5h6v7.5h-12z",
  account: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z M3 13.5c.5-2.5 2.5-3.5 5-3.5s4.5 1 5 3.5",
  users: "M6 7.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z M2 13c.3-2.2 2-3.2 4-3.2s3.7 1 4 3.2 " +
    "M10.5 7.5a2 2 0 0 0 0-4 M12 10c1.2.4 1.9 1.4 2 3",
  stats: "M3 13.5h10 M4.5 11V8 M8 11V3.5 M11.5 11V6",
  audit: "M3 4h10 M3 8h10 M3 12h6",
  exports: "M8 3v7 M5 7.5 8 10.5l3-3 M3 13.5h10",
  upload: "M8 10V3.5 M5 6l3-3 3 3 M3 13h10",
  download: "M8 3v7 M5 7.5l3 3 3-3 M3 13h10",
  trash: "M3 4.5h10 M6.5 4.5V3h3v1.5 M4.5 4.5l.6 8.5h5.8l.6-8.5 M6.8 7v3.5 M9.2 7v3.5",
  look: "M1.5 8c1.7-3 4-4.5 6.5-4.5s4.8 1.5 6.5 4.5c-1.7 3-4 4.5-6.5 4.5S3.2 11 1.5 8z " +
    "M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  link: "M6.5 9.5l3-3 M7 5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 9 M9 11l-1.5 1.5a2.8 2.8 0 0 1-4-4L5 7",
  menu: "M2.5 4.5h11 M2.5 8h11 M2.5 11.5h11",
  close: "M4 4l8 8 M12 4l-8 8",
  copy: "M6 6h7v7H6z M10 6V3H3v7h3",
  check: "M3 8.5 6.5 12 13 4.5",
  pencil: "M3 13l.7-3L10.5 3.2a1.2 1.2 0 0 1 1.7 0l.6.6a1.2 1.2 0 0 1 0 1.7L6 12.3z M9.5 4.2l2.3 2.3",
  up: "M8 13V3.5 M4.5 7 8 3.5 11.5 7",
  down: "M8 3v9.5 M4.5 9 8 12.5 11.5 9",
  left: "M10 3.5 5.5 8l4.5 4.5",
  right: "M6 3.5 10.5 8 6 12.5",
  first: "M11.5 3.5 7 8l4.5 4.5 M4.5 3.5v9",
  last: "M4.5 3.5 9 8l-4.5 4.5 M11.5 3.5v9",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6L13 6 M13 2.5V6H9.5",
  plus: "M8 3v10 M3 8h10",
  out: "M6 13.5H3v-11h3 M10 5l3 3-3 3 M13 8H6",
  hanger: "M8 6.3v-.6c.7-.2 1.1-.7 1.1-1.3a1.15 1.15 0 0 0-2.2-.3 " +
    "M8 6.3l4.7 3.7c.6.5.3 1.5-.6 1.5H3.9c-.9 0-1.2-1-.6-1.5z",
};

/** One of the drawings of `ICONS`, 16 pixels wide, which screen readers leave out. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}
