// The sessions of one's own account.

import { accountPage } from "../account.js";
import { del, forget, get, post } from "../api.js";
import { button, load, replaceKeepingFocus } from "../controls.js";
import { confirmDialog } from "../dialogs.js";
import { el, focusOn, nameText } from "../dom.js";
import { formatDate, formatRelative, timeText } from "../format.js";
import { leave } from "../frame.js";
import { notify } from "../notices.js";
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
  const others = button(t.others, { act: () => endOthers(refresh) });
  const all = button(t.all, { kind: "danger", act: endAll });
  const list = sessionTable((session, row) => end(session, row, refresh));
  const foot = pager({ isFixed: true });
  let sessions = [];
  const draw = () => page(list, foot, sessions);
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
  const update = () => replaceKeepingFocus(place, draw);
  return { element: accountPage(t.title, { lead: t.lead, actions: [others, all] }, place), update };
}

function page(list, foot, sessions) {
  const pages = Math.ceil(sessions.length / SIZE);
  const number = Math.min(Math.max(1, Math.trunc(Number(query().get("page"))) || 1), Math.max(1, pages));
  const rows = sessions.slice((number - 1) * SIZE, number * SIZE);
  const shown = numbered({ page: number, pages, total: sessions.length, size: SIZE });
  return [list.show(rows), ...(pages > 1 ? [foot.show(shown)] : [])];
}

function sessionTable(endOne) {
  return table({
    caption: t.caption,
    columns: [
      { label: t.device, main: true, cell: device },
      { label: t.signed_in, cell: ({ created_at: at }) => moment(at) },
      { label: t.used, cell: ({ last_refreshed_at: at, created_at: first }) => moment(at ?? first) },
      { label: t.expires, cell: ({ expires_at: at }) => el("span", { class: "nowrap" }, timeText(at, formatDate)) },
      { label: t.tools, hideLabel: true, cell: (session) => endButton(session, endOne) },
    ],
    empty: { title: t.none, text: t.none_text },
  });
}

const moment = (at) => el("span", { class: "nowrap" }, timeText(at, formatRelative));

function device({ user_agent: agent, address, is_current: isCurrent }) {
  const mark = isCurrent && [" ", el("span", { class: "badge is-accent" }, t.this_one)];
  return el("div", {}, deviceText(agent), mark,
    el("div", { class: "small soft" }, nameText(address ?? t.unknown_address)));
}

function endButton(session, endOne) {
  if (session.is_current) return button(texts.frame.sign_out, { kind: "quiet", act: leave });
  const label = t.end_label({ device: deviceName(session.user_agent), address: session.address ?? t.unknown_address });
  const element = button(t.end, { kind: "quiet danger", busy: t.ending, "aria-label": label,
    act: () => endOne(session, element.closest("tr")) });
  return element;
}

/** Ends a session. The focus goes to the row that comes into its place, since the button goes. */
async function end(session, row, refresh) {
  const index = row.rowIndex;
  const grid = row.closest("table");
  let said = t.ended;
  try {
    await del(`/auth/sessions/${session.id}`);
  } catch (error) {
    if (error.reason !== "SESSION_NOT_FOUND") throw error;
    said = t.ended_already;
  }
  const isShown = await refresh();
  notify(said);
  if (!isShown) return; // the person is at another page by now
  const next = grid.rows[Math.min(index, grid.rows.length - 1)]?.querySelector("button");
  focusOn(next);
}

async function endOthers(refresh) {
  const isDone = await confirmDialog(t.others_title, t.others_text, {
    label: t.others,
    busy: t.ending,
    act: () => post("/auth/logout", undefined, { query: { scope: "others" } }),
  });
  if (!isDone) return;
  const isShown = await refresh();
  notify(t.others_done);
  if (isShown) focusOn();
}

async function endAll() {
  const isDone = await confirmDialog(t.all_title, t.all_text, {
    label: t.all,
    busy: t.ending,
    danger: true,
    act: () => post("/auth/logout", undefined, { query: { scope: "all" } }),
  });
  if (!isDone) return;
  forget();
  notify(t.all_done);
}
