// Plans and limits as sentences.
import { model, features, resultText, target, wish } from "./state.js";
import { language, list, number, numeral, percent, t } from "./texts.js";
import { shown, told, withUnit } from "./values.js";

const nameOf = (name) => features.value.get(name)?.text ?? name;
const english = () => language.value === "en";

function step(one, key) {
  const feature = features.value.get(one.feature);
  const side = (text, value) => withUnit(feature ?? {}, told(feature, text, value));
  return t(`verb.${one.verb}${key}`, { feature: nameOf(one.feature), before: side(one.before), after: side(one.after) });
}

const capital = (text) => text.replace(/^./u, (first) => first.toLocaleUpperCase());

/** What a plan changes, joined: "raise hours from 40 to 45 and change job from a to b". */
export const doing = (plan) => list(plan.sentence.map((one) => step(one, "")));

/** A plan as sentences to read aloud. */
export function sentence(plan) {
  const sure = t("words.sure", { percent: numeral(plan.percent), result: resultText(target.value) });
  return `${capital(doing(plan))}. ${t("words.rest")} ${sure}`;
}

/** The sentence for those who don't see the page, short. */
export function announced(answer, plan) {
  const count = answer.plans.length ? t("live.count", { n: answer.found }) : t("live.none");
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
  frozen: (name) => t("limit.frozen", { feature: nameOf(name) }),
  increase: (name) => t("limit.increase", { feature: nameOf(name) }),
  decrease: (name) => t("limit.decrease", { feature: nameOf(name) }),
  ranges: (name) => rangeText(name),
  allowed: (name) => t("limit.allowed", { feature: nameOf(name), values: values(name, wish.value.only[name] ?? []) }),
  forbidden: (name) => t("limit.known", { feature: nameOf(name) }),
  steps: (name) => t("limit.steps", { feature: nameOf(name), step: number(wish.value.step[name]) }),
  pinned: (name) => t("limit.pinned", { feature: nameOf(name), value: values(name, [wish.value.pin[name]]) }),
  max_changes: () => t("limit.max_changes", { n: wish.value.most }),
  max_cost: () => t("limit.max_cost", { n: wish.value.budget }),
  confidence: () => t("limit.confidence", { percent: percent(wish.value.sure) }),
};

const values = (name, found) => list(found.map((value) => shown(features.value.get(name), value)));

function rangeText(name) {
  const feature = features.value.get(name);
  const [low, high] = (wish.value.range[name] ?? [null, null]).map((value) => value !== null && withUnit(feature, shown(feature, value)));
  const key = low && high ? "limit.between" : low ? "limit.atleast" : "limit.atmost";
  return t(key, { feature: nameOf(name), low, high });
}

/** A limit that the engine speaks of: its own sentence in English, ours elsewhere. */
export function limitText(one) {
  if (english()) return one.sentence;
  const say = LIMITS[one.kind];
  return say && (one.feature === null || features.value.has(one.feature)) ? say(one.feature) : one.sentence;
}

/** Every limit as a sentence, for print and for the list of costs. */
export function limitTexts() {
  const { freeze, way, range, only, known, step: steps, pin, not, most, budget, rules, strict, sure } = wish.value;
  const each = (kind, names) => names.map((name) => LIMITS[kind](name));
  return [
    ...(most === null ? [] : [LIMITS.max_changes()]), ...(sure === null ? [] : [LIMITS.confidence()]), ...(budget === null ? [] : [LIMITS.max_cost()]),
    ...each("frozen", freeze), ...each("increase", Object.keys(way).filter((name) => way[name] === "up")),
    ...each("decrease", Object.keys(way).filter((name) => way[name] === "down")), ...each("ranges", Object.keys(range)),
    ...each("allowed", Object.keys(only)), ...each("forbidden", known), ...each("steps", Object.keys(steps)), ...each("pinned", Object.keys(pin)),
    ...not.map((one) => t("limit.refused", { feature: nameOf(one.feature), value: values(one.feature, [one.value]) })),
    ...rules.map((rule) => t("limit.rule", { rule })), ...(strict ? [t("limit.strict")] : []),
    ...(english() ? model.value.own.sentences : model.value.own.sentences),
  ];
}

/** A looser limit, as what a button would do. */
export function looserText(one) {
  if (english()) return one.sentence;
  const { low, high, texts = {} } = one.arguments ?? {};
  const feature = features.value.get(one.feature);
  const say = (value, text) => (text ? numeral(text) : feature ? shown(feature, value) : number(value));
  const args = { feature: nameOf(one.feature), low: low !== undefined && say(low, texts.low), high: high !== undefined && say(high, texts.high), n: one.asking?.constraints?.max_changes, percent: one.asking?.confidence && percent(one.asking.confidence) };
  const key = one.kind === "range" ? (args.low && args.high ? "looser.between" : args.high ? "looser.high" : "looser.low") : `looser.${one.kind}`;
  const text = t(key, args);
  return text === key ? one.sentence : text;
}
