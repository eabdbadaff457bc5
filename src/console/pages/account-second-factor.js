// The second factor: setting it up with an authenticator app, its recovery codes, and switching it off.

import { CURRENT_PASSWORD, accountPage, isBack, provable, sayDone, showOnce } from "../account.js";
import { currentUser, del, get, post, setCurrentUser } from "../api.js";
import { save } from "../contents.js";
import { button, copyButton, load, section } from "../controls.js";
import { formDialog } from "../dialogs.js";
import { el, focusOn, replace } from "../dom.js";
import { form } from "../forms.js";
import { formatDate, timeText } from "../format.js";
import { qrPicture } from "../qr.js";
import { texts } from "../texts.js";
import { account } from "../texts/account.js";

const t = account.second_factor;
const PATH = "/auth/second-factor";
/** With this many recovery codes left, or fewer, the page advises to make new ones. */
const FEW = 3;
const CODE = { name: "code", label: texts.sign_in.code, required: true, autocomplete: "one-time-code",
  autocapitalize: "none", reasons: ["SECOND_FACTOR_INVALID"], dir: "ltr" };

export function show({ leaving }) {
  const place = el("div", {});
  const draw = (said) => load(place, {
    signal: leaving,
    work: () => get(PATH, {}, leaving),
    show: (state) => {
      setCurrentUser({ ...currentUser(), second_factor: state.enabled }); // read by other pages
      const note = said && el("p", { class: "note is-warn", role: "alert" }, said);
      return [note, state.enabled ? whenOn(state, draw) : whenOff(place, draw)];
    },
  });
  draw();
  return accountPage(t.title, { lead: t.lead }, place);
}

function whenOff(place, draw) {
  const made = form({
    fields: provable("second-factor", [CURRENT_PASSWORD]),
    label: t.begin_submit,
    busy: t.begin_busy,
    submit: async (values) => {
      const offer = await unlessChanged(() => post(PATH, values), draw);
      if (offer) replace(place, offered(offer, draw));
      place.querySelector("[data-focus]")?.focus();
    },
  });
  return section(t.begin_title, { lead: t.begin }, made.element);
}

/** The secret, as a picture and as text, and the field for the first code. */
function offered({ secret, qr_svg: picture }, draw) {
  const made = form({
    fields: [{ ...CODE, hint: t.confirm_hint, inputmode: "numeric", "data-focus": "" }],
    label: t.confirm_submit,
    busy: t.confirm_busy,
    extra: button(texts.cancel, { act: () => draw() }),
    submit: async (values) => {
      const answer = await unlessChanged(() => post(`${PATH}/confirm`, values).catch((error) => {
        if (error.reason === "SECOND_FACTOR_INVALID") error.message = t.wrong_code;
        throw error;
      }), draw, t.expired);
      if (!answer) return;
      const drawn = draw();
      if (await showCodes(answer.recovery_codes)) sayDone(t.switched_on, await drawn);
    },
  });
  const groups = secret.match(/.{1,4}/g).join(" ");
  return section(t.offer_title, { lead: t.offer },
    el("div", { class: "offer" },
      qrPicture(picture, t.qr),
      el("div", { class: "stack" },
        el("p", { class: "small soft" }, `${t.secret}. ${t.secret_kind}`),
        el("p", { class: "code secret", translate: "no" }, groups),
        el("p", {}, copyButton(secret, t.copy_secret)))),
    made.element);
}

/**
 * What `work` answers. Where the second factor was switched on or off elsewhere meanwhile, such as in another tab, that
 * is said, the page drawn anew, and the answer is `null`. `gone` is said where there is none any more.
 */
async function unlessChanged(work, draw, gone = t.elsewhere_off) {
  try {
    return await work();
  } catch (error) {
    const said = { SECOND_FACTOR_ENABLED: t.elsewhere_on, SECOND_FACTOR_NOT_FOUND: gone }[error.reason];
    if (!said) throw error;
    if (await draw(said)) focusOn();
    return null;
  }
}

/** Shows new recovery codes; answers whether the person has seen them to the end. */
function showCodes(codes) {
  const { username, email } = currentUser() ?? {};
  const head = t.download_head({ service: location.host, name: username ?? email, date: formatDate(new Date()) });
  const file = `${head}\n${codes.join("\n")}\n`;
  return showOnce(t.codes_title, [
    el("p", {}, t.codes),
    el("ol", { class: "codes code", translate: "no" }, codes.map((code) => el("li", {}, code))),
    el("div", { class: "row" }, copyButton(codes.join("\n")),
      button(t.download, { kind: "primary", on: { click: () => save(file, t.download_name) } })),
  ], t.kept);
}

function whenOn({ enabled_at: since, recovery_codes_left: count }, draw) {
  const isFew = count <= FEW;
  if (isBack("renew")) queueMicrotask(() => renew(draw));
  if (isBack("disable")) queueMicrotask(() => disable(draw));
  const left = count ? [t.left({ count }), isFew && ` ${t.few_left}`] : t.none_left;
  const actions = [
    button(t.renew, { act: () => renew(draw) }),
    button(t.disable, { kind: "danger", act: () => disable(draw) }),
  ];
  const note = el("p", { class: isFew ? "note is-warn" : "soft" }, left);
  return section([t.on_since, " ", timeText(since)], { actions }, note);
}

async function renew(draw) {
  const answer = await prove("renew", t.renew, t.renew_text, t.renew_submit, account.creating, draw,
    (values) => post(`${PATH}/recovery-codes`, values));
  if (answer && (await showCodes(answer.recovery_codes))) sayDone(t.renewed, await draw());
}

async function disable(draw) {
  const isDone = await prove("disable", t.disable_title, t.disable_text, t.disable, t.disable_busy, draw,
    (values) => del(PATH, { body: values }).then(() => true), "danger");
  if (isDone) sayDone(t.disabled, await draw());
}

/** Does `work` with a proof of who it is and a code that a dialog asks for. Answers what it answers, or nothing. */
function prove(purpose, title, text, label, busy, draw, work, kind = "primary") {
  const fields = provable(purpose, [CURRENT_PASSWORD, { ...CODE, hint: t.code_hint }]);
  const submit = (values) => unlessChanged(() => work(values), draw);
  return formDialog(title, { text, fields, label, busy, kind, submit });
}
