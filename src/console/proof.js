// The OpenID provider in place of the current password, in forms of people who have an identity there.

import { currentUser } from "./api.js";
import { button } from "./controls.js";
import { el, replace } from "./dom.js";
import { field } from "./forms.js";
import { identityNote, isBack, provider, providerLink, takeReturned } from "./identity.js";
import { identity as t } from "./texts/identity.js";

export { isBack };

const isPassword = ({ autocomplete }) => autocomplete === "current-password";
/** What is never kept while the person is away. */
const SECRET = ".password *, [autocomplete='one-time-code']";

/**
 * The fields of a form where the person has an identity: that for the current password offers the provider too, and
 * once the person is back what they had typed is in the others. `purpose` tells the forms apart; `who` has the
 * identity; `kept()` answers what must not be lost either.
 */
export function provable(purpose, descriptions, { who = currentUser(), kept = () => ({}) } = {}) {
  if (!who?.has_identity) return descriptions;
  const back = takeReturned(purpose);
  const trip = (form) => ({ purpose, isAgain: true, fields: { ...typedIn(form), ...kept() } });
  return descriptions.map((each) => {
    if (each instanceof Node) return each;
    if (isPassword(each)) return provableField(each, { trip, back, hasPassword: who.has_password });
    return { ...each, value: back?.fields[each.name] ?? each.value };
  });
}

function typedIn(form) {
  const inputs = [...form.querySelectorAll("[data-key]:is(input, select, textarea)")];
  return Object.fromEntries(inputs.filter((input) => !input.matches(SECRET))
    .map((input) => [input.dataset.key, input.type === "checkbox" ? input.checked : input.value]));
}

/** The field for the password. Once the provider has confirmed the person, a line says who that is in place of it. */
function provableField({ isHidden, ...description }, { trip, back, hasPassword }) {
  const made = field({ ...description, names: ["oidc"], reasons: [...description.reasons, "INVALID_CODE"] });
  const { element, input } = made;
  const asked = [...element.childNodes];
  const problem = element.querySelector(".field-error");
  const link = providerLink((hasPassword ? t.confirm_instead : t.confirm)({ provider }),
    () => trip(element.closest("form")), { keeps: true });
  let proof = back?.proof;
  const draw = () => {
    const other = hasPassword && button(t.use_password, { on: { click: askForPassword } });
    const way = el("p", { class: "row" }, link);
    const parts = hasPassword ? [asked, way] : [way, problem];
    replace(element, proof ? [identityNote(back.name, other), problem] : parts);
  };
  const set = (content) => {
    proof = null;
    draw();
    made.set(content);
  };
  function askForPassword() {
    set("");
    input.focus();
  }
  draw();
  made.show(!isHidden || Boolean(proof));
  return {
    ...made,
    get sentAs() { return proof ? "oidc" : description.name; },
    value: () => proof ?? made.value(),
    set,
    /** What was proven is used up by then. */
    error(sentence) {
      if (sentence && proof) set("");
      made.error(sentence && !hasPassword && sentence !== t.used_up ? t.first : sentence);
      if (sentence && !hasPassword) link.focus();
    },
  };
}
