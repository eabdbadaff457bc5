// The sessions of one's own account.

import { accountPage, endAt, sayDone } from "../account.js";
import { forget, get, post } from "../api.js";
import { button, load, replaceKeepingFocus } from "../controls.js";
import { confirmDialog } from "../dialogs.js";
import { el, nameText } from "../dom.js";
import { formatDate, formatRelative, timeText } from "../format.js";
import { leave, notify } from "../frame.js";
import { query } from "../router.js";
import { numbered, pager, table } from "../tables.js";
import { texts } from "../texts.js";
import { account } from "../texts/account.js";
import { deviceName, deviceText } from "../user-agents.js";

const t = account.sessions;
/** Rows of a page. The API answers all sessions together, at most 1,000. */
const SIZE = 50;

export function show({ leaving }) {
  const place = el("div", { class: "brief-list" });
  const list = sessionTable((session) => end(session, refresh));
  const foot = pager({ isFixed: true });
  let sessions = [];
  const draw = () => {
    const pages = Math.ceil(sessions.length / SIZE);
    const page = Math.min(Math.max(1, Math.trunc(Number(query().get("page"))) || 1), Math.max(1, pages));
    const shown = numbered({ page, pages, total: sessions.length, size: SIZE });
    return [list.show(sessions.slice((page - 1) * SIZE, page * SIZE)), pages > 1 && foot.show(shown)];
  };
  const refresh = () => load(place, {
    signal: leaving,
    waiting: list.waiting(3),
    work: async () => {
      ({ sessions } = await get("/auth/sessions", {}, leaving));
      sessions.sort((one, other) => other.is_current - one.is_current);
    },
    show: draw,
  });
  refresh();
  const actions = [button(t.others, { act: () => endOthers(refresh) }), button(t.all, { kind: "danger", act: endAll })];
  const element = accountPage(t.title, { lead: t.lead, actions }, place);
  return { element, update: () => replaceKeepingFocus(place, draw) };
}

function sessionTable(endOne) {
  return table({
    caption: t.caption,
    keeps: true,
    columns: [
      { label: t.device, main: true, cell: device },
      { label: t.signed_in, cell: ({ created_at: at }) => moment(at) },
      { label: t.used, cell: ({ last_refreshed_at: at, created_at: first }) => moment(at ?? first) },
      { label: account.expires, cell: ({ expires_at: at }) => moment(at, formatDate) },
      { label: account.actions, hideLabel: true, cell: (session) => endButton(session, endOne) },
    ],
    empty: { title: t.none, text: t.none_text },
  });
}

const moment = (at, format = formatRelative) => el("span", { class: "nowrap" }, timeText(at, format));

function device({ user_agent: agent, address, is_current: isCurrent }) {
  const mark = isCurrent && [" ", el("span", { class: "badge is-accent" }, t.this_one)];
  return el("div", {}, deviceText(agent), mark,
    el("div", { class: "small soft" }, nameText(address ?? t.unknown_address)));
}

function endButton(session, endOne) {
  const { id, user_agent: agent, address, is_current: isCurrent } = session;
  const options = { kind: "quiet", "data-key": `end-${id}` };
  if (isCurrent) return button(texts.frame.sign_out, { ...options, act: leave });
  const label = t.end_label({ device: deviceName(agent), address: address ?? t.unknown_address });
  return button(t.end, { ...options, kind: "quiet danger", busy: t.ending, "aria-label": label,
    act: () => endOne(session) });
}

/** Ends a session. The table moves the focus to the row that comes into its place, since the button goes. */
async function end(session, refresh) {
  const said = await endAt(`/auth/sessions/${session.id}`, t.ended);
  await refresh();
  notify(said);
}

async function endOthers(refresh) {
  if (await askToEnd("others", t.others, t.others_title, t.others_text)) sayDone(t.others_done, await refresh());
}

async function endAll() {
  if (!(await askToEnd("all", t.all, t.all_title, t.all_text))) return;
  forget();
  notify(t.all_done);
}

/** Ends the sessions that the API calls so, after a question; answers whether it has. */
const askToEnd = (scope, label, title, text) => confirmDialog(title, text, {
  label,
  busy: t.ending,
  danger: scope === "all",
  act: () => post("/auth/logout", undefined, { query: { scope } }),
});
