// Plans and limits as sentences.
import { answer, features, model, resultText, target, wish } from "./state.js";
import { has, language, list, numeral, percent, t } from "./texts.js";
import { told, withUnit } from "./values.js";

const nameOf = (name) => features.value.get(name)?.text ?? name;
const english = () => language.value === "en";

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
export function announced(found, plan) {
  const count = found.plans.length ? t("live.count", { n: found.found }) : t("live.none");
  if (!plan) return count;
  const first = list(plan.sentence.map((one) => step(one, ".short")));
  return `${count} ${t("live.plan", { letter: plan.letter, doing: first, percent: numeral(plan.percent) })}`;
}

/** How usual a plan's values are, for people like this. */
export function usual(plan) {
  if (plan.rarity === null || plan.rarity === undefined) return "–";
  return english() ? plan.rarity_words : t("rarity", { n: Math.max(1, Math.round(plan.rarity * 10)) });
}

// -- limits ---------------------------------------------------------------------------------------------------

const LIMITS = {
  range: (name, { low, high, low_text, high_text }) => t(low === null ? "limit.atmost" : high === null ? "limit.atleast" : "limit.between", { feature: name, low: numeral(low_text ?? ""), high: numeral(high_text ?? "") }),
  allowed: (name, { texts }) => t("limit.allowed", { feature: name, values: list(texts) }),
  forbidden: (name, { texts }) => t("limit.forbidden", { feature: name, values: list(texts) }),
  refused: (name, { text }) => t("limit.forbidden", { feature: name, values: numeral(text) }),
  pinned: (name, { text }) => t("limit.pinned", { feature: name, value: numeral(text) }),
  step: (name, { text }) => t("limit.step", { feature: name, step: numeral(text) }),
  max_changes: (_, { most }) => t("limit.max_changes", { n: most }),
  cost: (_, { most }) => t("limit.cost", { n: most }),
  rule: (_, { rule }) => t("limit.rule", { rule }),
};
const PLAIN = ["frozen", "increase", "decrease"];

/** A limit that the engine speaks of: its own sentence in English, ours elsewhere. */
export function limitText(one) {
  if (english()) return one.sentence;
  const name = nameOf(one.feature);
  if (PLAIN.includes(one.kind)) return t(`limit.${one.kind}`, { feature: name });
  const absolute = one.kind !== "range" || one.arguments.of === "absolute";
  return absolute && one.arguments && LIMITS[one.kind] ? LIMITS[one.kind](name, one.arguments) : one.sentence;
}

/** Every limit as a sentence, the owner's last. */
export const limitTexts = () => [
  ...(wish.value.sure === null ? [] : [t("limit.confidence", { percent: percent(wish.value.sure) })]),
  ...(answer.value?.pressure ?? []).map(limitText),
  ...model.value.own.sentences,
];

/** A looser limit, as what a button would do. */
export function looserText(one) {
  if (english()) return one.sentence;
  const { to, end, to_text: text } = one.arguments ?? {};
  const key = one.kind === "range" ? `looser.${end || "high"}` : `looser.${one.kind}`;
  if (!has(key)) return one.sentence;
  return t(key, { feature: nameOf(one.feature), to: numeral(text ?? String(to ?? "")), n: to, percent: typeof to === "number" ? percent(to) : "" });
}
