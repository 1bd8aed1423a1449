// Limits as the page holds them, as the constraints that are sent, and whether a plan keeps them.
import { has, levelOf, own } from "./values.js";

export const EFFORT = { easy: 1, medium: 2, hard: 4 };

/** What is asked for before anybody says anything. */
export const START = Object.freeze({
  person: null, own: null, want: null, n: 4, most: 3, p: null, sure: null, seed: 0,
  freeze: [], range: {}, way: {}, only: {}, known: [], effort: {}, budget: null, rules: [], step: {},
  strict: false, lift: [], pin: {}, hand: {}, not: [], plan: null,
});

const filled = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== false && (typeof value !== "object" || Object.keys(value).length)));
const named = (way, direction) => Object.keys(way).filter((name) => way[name] === direction);

/** The caller's limits, as `Constraints` reads them. */
export function constraintsOf(wish, model) {
  const effort = wish.budget !== null || Object.keys(wish.effort).length;
  const able = effort ? model.features.filter((one) => !one.locked && !wish.freeze.includes(one.name)) : [];
  return filled({
    frozen: wish.freeze,
    ranges: wish.range,
    increase: named(wish.way, "up"),
    decrease: named(wish.way, "down"),
    allowed: wish.only,
    forbidden: Object.fromEntries(wish.known.map((name) => [name, [null]])),
    max_changes: wish.most,
    cost: Object.fromEntries(able.map((one) => [one.name, EFFORT[own(wish.effort, one.name) ?? "medium"]])),
    max_cost: wish.budget,
    rules: wish.rules,
    steps: wish.step,
    strict: wish.strict,
    override: wish.lift,
  });
}

/** What is asked: the part that ask, settle, relax, receipt and cohort have in common. */
export function askingOf(wish, model) {
  return {
    person: wish.own ? null : wish.person,
    values: wish.own,
    target: wish.want ?? model.wanted ?? null,
    n: wish.n,
    p: wish.p,
    confidence: wish.sure,
    constraints: constraintsOf(wish, model),
    pinned: wish.pin,
    refused: wish.not,
    seed: wish.seed,
  };
}

/** The part of a wish that a looser question changes. */
export function wishOf(parts, wish) {
  const given = parts.constraints ?? {};
  const ways = (names, way) => (names ?? []).map((name) => [name, way]);
  const limits = !parts.constraints ? {} : {
    freeze: given.frozen ?? [],
    range: given.ranges ?? {},
    way: Object.fromEntries([...ways(given.increase, "up"), ...ways(given.decrease, "down")]),
    only: given.allowed ?? {},
    known: Object.keys(given.forbidden ?? {}).filter((name) => given.forbidden[name].includes(null)),
    most: given.max_changes ?? null,
    budget: given.max_cost ?? null,
    effort: given.cost ? wish.effort : {},
    rules: given.rules ?? [],
    step: given.steps ?? {},
    strict: given.strict ?? false,
    lift: given.override ?? [],
  };
  return {
    ...limits,
    ...(parts.pinned ? { pin: parts.pinned } : {}),
    ...(parts.refused ? { not: parts.refused } : {}),
    ...("confidence" in parts ? { sure: parts.confidence } : {}),
  };
}

/** Whether anything is said about a feature. */
export const isLimited = (wish, name) =>
  wish.freeze.includes(name) || has(wish.range, name) || has(wish.way, name) || has(wish.only, name) ||
  wish.known.includes(name) || has(wish.pin, name) || has(wish.step, name) || has(wish.effort, name) || wish.not.some((one) => one.feature === name);

/** How many limits there are. */
export const countOf = (wish) =>
  [wish.freeze, wish.known, wish.rules, wish.not].reduce((sum, names) => sum + names.length, 0) +
  [wish.range, wish.way, wish.only, wish.pin, wish.step].reduce((sum, named) => sum + Object.keys(named).length, 0) +
  (wish.most !== null) + (wish.budget !== null);

/** The limit that a value of a feature breaks, by name, or null. `before` is the value now. */
export function broken(wish, feature, value, before) {
  const { name } = feature;
  if (value === before) return null;
  if (wish.freeze.includes(name)) return "freeze";
  if (has(wish.pin, name) && value !== wish.pin[name]) return "pin";
  if (value === null) return wish.known.includes(name) || has(wish.range, name) || has(wish.way, name) || (has(wish.only, name) && !wish.only[name].includes(null)) ? "known" : null;
  if (has(wish.only, name) && !wish.only[name].includes(value)) return "only";
  const [low, high] = own(wish.range, name) ?? [null, null];
  if ((low !== null && value < low) || (high !== null && value > high)) return "range";
  if (has(wish.way, name) && before !== null && rank(feature, value) < rank(feature, before) === (wish.way[name] === "up")) return "way";
  return wish.not.some((one) => one.feature === name && one.value === value) ? "not" : null;
}

const rank = (feature, value) => (feature.kind === "number" ? value : feature.levels.indexOf(levelOf(feature, value)));

/** Whether a plan that was found for other limits keeps these. */
export function keeps(wish, plan, features, values) {
  if (wish.most !== null && plan.changes.length > wish.most) return false;
  const changed = new Set(plan.changes.map((one) => one.feature));
  if (Object.keys(wish.pin).some((name) => plan.values[name] !== wish.pin[name])) return false;
  return features.every((feature) => !changed.has(feature.name) || !broken(wish, feature, plan.values[feature.name], values[feature.name]));
}

// -- changing one limit ---------------------------------------------------------------------------------------

const toggled = (names, name) => (names.includes(name) ? names.filter((one) => one !== name) : [...names, name]);
const without = (named, name) => Object.fromEntries(Object.entries(named).filter(([key]) => key !== name));
const put = (named, name, value) => (value === null || value === undefined ? without(named, name) : { ...named, [name]: value });

export const lock = (wish, name) => ({ freeze: toggled(wish.freeze, name) });
export const setWay = (wish, name, way) => ({ way: put(wish.way, name, way || null) });
export const setEffort = (wish, name, effort) => ({ effort: put(wish.effort, name, effort === "medium" ? null : effort) });
export const setRange = (wish, name, [low, high]) => ({ range: put(wish.range, name, low === null && high === null ? null : [low, high]) });
/** May it become missing? */
export const maybeMissing = (wish, name) => (has(wish.only, name) ? wish.only[name].includes(null) : !wish.known.includes(name));
export function setKnown(wish, name) {
  if (!(has(wish.only, name))) return { known: toggled(wish.known, name) };
  return { only: put(wish.only, name, toggled(wish.only[name], null)), known: wish.known.filter((one) => one !== name) };
}
export const setHand = (wish, name, value, before) => ({
  hand: value === before ? without(wish.hand, name) : { ...wish.hand, [name]: value },
  pin: has(wish.pin, name) ? { ...wish.pin, [name]: value } : wish.pin,
});
export const setPin = (wish, name, value) => ({ pin: has(wish.pin, name) ? without(wish.pin, name) : { ...wish.pin, [name]: value } });
export const refuse = (wish, feature, value) => ({ not: [...wish.not, { feature, value }] });

/** Which values a feature may take: all is no limit, none is refused. */
export function setOnly(wish, feature, values) {
  if (!values.length) return null;
  const all = feature.levels.length + (feature.missing ? 1 : 0);
  return { only: put(wish.only, feature.name, values.length === all ? null : values) };
}
export const allOf = (feature) => [...feature.levels.map((level) => level.value), ...(feature.missing ? [null] : [])];
