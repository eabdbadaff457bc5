// What the pages of links have in common, which are for people without an account. The secret of the link is the
// fragment of the address, which browsers send to nobody. They need no session and no API key, and leave both alone.

import { errorOf, offlineError } from "./api.js";
import { load, skeleton } from "./controls.js";
import { el, nameText, replace } from "./dom.js";
import { brand, setTitle } from "./frame.js";

/** Milliseconds after which a request is given up. */
const TIMEOUT = 60_000;

/**
 * The page of the link that the address names, as `show` of a page answers it. `t` are its texts, `shownOf(about,
 * { address, ask, signal, refresh })` answers what it shows, `{ title, mark, sender, sent, content }`: `about` is what
 * the service tells of the link at `address`, `ask(path, options)` answers as it does, or `null` where there is nothing
 * any more; `signal` is aborted when something else is shown, and `refresh()` shows the page anew. Links by which files
 * are sent have a page of their own, to which those to files lead, and the other way round.
 */
export function linkPage({ leaving }, t, shownOf) {
  document.documentElement.classList.add("is-link"); // the service has not where it did not know the address
  const heading = el("h1", { tabindex: "-1" }, t.title);
  const lead = el("div", { class: "link-lead" });
  const place = el("div", {});
  let latest = new AbortController();
  const refresh = () => {
    latest.abort();
    latest = new AbortController();
    const signal = AbortSignal.any([leaving, latest.signal]);
    const ask = (path, options = {}) => askService(path, { ...options, signal: leaving });
    const token = location.hash.slice(1);
    const address = `/api/v1/links/${encodeURIComponent(token)}`;
    return load(place, {
      signal: leaving,
      waiting: skeleton(3),
      work: async () => {
        const about = token && await aboutOf(address, ask);
        if (!about) return null;
        const own = about.upload ? "/console/send" : "/console/link";
        if (own !== location.pathname) {
          location.replace(own + location.hash);
          await new Promise(() => {}); // until that page comes
        }
        return shownOf(about, { address, ask, signal, refresh });
      },
      show: (found) => {
        const { title, mark, sender, sent, content = el("p", {}, t.ended) } = found ?? {};
        replace(heading, found ? nameText(title) : t.ended_title);
        setTitle(heading.textContent);
        replace(lead, found && [mark, sender && el("p", { class: "soft" }, nameText(sender), sent)]);
        return content;
      },
    });
  };
  refresh();
  // Its link leads to another document at once: where the browser asks before, the address is still that of the link.
  const start = Object.assign(brand(), { target: "_self" });
  return { element: el("div", { class: "narrow" }, start, lead, heading, place), update: refresh };
}

/** What the service tells about a link; `null` where the link has ended. */
export async function aboutOf(address, ask) {
  const response = await ask(`${address}?about=true`);
  return response && response.json();
}

/** What `browser.js` has asked already, once. */
function asked(address) {
  const page = /** @type {any} */ (window);
  const { answer } = page.asked?.address === address ? page.asked : {};
  delete page.asked;
  return answer;
}

/** The service's answer, or `null` where the link has ended. */
async function askService(address, { signal, ...options }) {
  let response;
  try {
    const either = AbortSignal.any([AbortSignal.timeout(TIMEOUT), signal]);
    response = await (asked(address)
      ?? fetch(address, { ...options, cache: "no-store", credentials: "omit", signal: either }));
  } catch (error) {
    signal.throwIfAborted();
    throw offlineError(error);
  }
  if (response.status === 404) return null;
  if (!response.ok) throw errorOf(response.status, (name) => response.headers.get(name), await response.text());
  return response;
}
