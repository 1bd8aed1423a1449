// Plans and limits as sentences.
import { answer, features, model, resultText, target, wish } from "./state.js";
import { either, has, language, list, numeral, percent, t } from "./texts.js";
import { told, withUnit } from "./values.js";

const nameOf = (name) => features.value.get(name)?.text ?? name;

function step(one, key) {
  const feature = features.value.get(one.feature);
  const side = (text, value) => withUnit(feature ?? {}, told(feature, text, value));
  return t(`verb.${one.verb}${key}`, { feature: nameOf(one.feature), before: side(one.before), after: side(one.after) });
}

export const capital = (text) => text.replace(/^./u, (first) => first.toLocaleUpperCase());

/** What a plan changes, joined: "raise hours from 40 to 45 and change job from a to b". */
export const doing = (plan) => list(plan.sentence.map((one) => step(one, "")));

/** A plan as sentences to read aloud. */
export function sentence(plan) {
  const sure = t("words.sure", { percent: numeral(plan.percent), result: resultText(target.value) });
  return `${capital(doing(plan))}. ${t("words.rest")} ${sure}`;
}

/** The sentence for those who don't see the page, short. */
export function announced(found, plan, none) {
  const count = found.plans.length ? t("live.count", { n: found.found }) : none;
  if (!plan) return count;
  const first = list(plan.sentence.map((one) => step(one, ".short")));
  return `${count} ${t("live.plan", { letter: plan.letter, doing: first, percent: numeral(plan.percent) })}`;
}

/** How usual a plan's values are, for people like this. */
export function usual(plan) {
  if (plan.plausibility === null || plan.plausibility === undefined) return "–";
  const tenths = Math.floor(plan.plausibility * 10);
  return tenths ? t("plausibility", { n: tenths }) : t("plausibility.least");
}

// -- limits ---------------------------------------------------------------------------------------------------

const LIMITS = {
  range: (name, { low, high, low_text, high_text, of }) => t(`limit${of === "absolute" ? "" : ".change"}.${low === null ? "atmost" : high === null ? "atleast" : "between"}`, { feature: name, low: numeral(low_text ?? ""), high: numeral(high_text ?? "") }),
  allowed: (name, { texts }) => t("limit.allowed", { feature: name, values: either(texts) }),
  forbidden: (name, { texts }) => t("limit.forbidden", { feature: name, values: either(texts) }),
  refused: (name, { text }) => t("limit.refused", { feature: name, value: numeral(text) }),
  pinned: (name, { text }) => t("limit.pinned", { feature: name, value: numeral(text) }),
  step: (name, { text }) => t("limit.step", { feature: name, step: numeral(text) }),
  max_changes: (_, { most }) => t("limit.max_changes", { n: most }),
  cost: (_, { most }) => t("limit.cost", { n: most }),
  rule: (_, { rule }) => t("limit.rule", { rule }),
  transition: (name, { texts }) => `${name}: ${moves({ arguments: { texts } }).join("; ")}`,
  consequences: (name, { value }) => t("limit.follows", { feature: name, value }),
  effort: (name, { cost }) => t("limit.effort", { feature: name, n: cost }),
};

/** Where each value may go, one sentence each. */
export const moves = (one) => one.arguments.texts.map(([from, ends]) => (ends.length ? t("limit.move", { from, ends: either(ends) }) : t("limit.stays", { from })));

/** A limit in the page's own words; the engine's where it has none. */
export function limitText(one) {
  const name = nameOf(one.feature);
  if (one.kind === "frozen") return t("limit.frozen", { feature: name });
  if (one.kind === "increase" || one.kind === "decrease") {
    const { kind, levels } = features.value.get(one.feature) ?? {};
    const end = kind === "ordinal" && levels.at(one.kind === "increase" ? -1 : 0)?.text;
    return end ? t("limit.towards", { feature: name, end }) : t(`limit.${one.kind}`, { feature: name });
  }
  return one.arguments && LIMITS[one.kind] ? LIMITS[one.kind](name, one.arguments) : one.sentence;
}

/** Every limit as a sentence, the owner's last. */
export const limitTexts = () => [
  ...(wish.value.sure === null ? [] : [t("limit.confidence", { percent: percent(wish.value.sure) })]),
  ...(answer.value?.pressure ?? []).map(limitText),
  ...model.value.own.limits.map(limitText),
];

/** A looser limit, as what a button would do. */
export function looserText(one) {
  const { to, end, to_text: text } = one.arguments ?? {};
  const key = one.kind === "range" ? `looser.${end || "high"}` : `looser.${one.kind}`;
  if (!has(key)) return one.sentence;
  return t(key, { feature: nameOf(one.feature), to: numeral(text ?? String(to ?? "")), n: to, percent: typeof to === "number" ? percent(to) : "" });
}

/** Why something was refused: in the engine's words where they are the page's language. */
export function refusedText({ text, feature }) {
  if (language.value === "en") return text;
  return feature === null ? t("refused") : t("refused.feature", { feature: nameOf(feature) });
}
