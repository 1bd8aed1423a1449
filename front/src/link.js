// A question as a readable link: limits and wishes, never a person's values.
import { START } from "./limits.js";

/** A key of its own, also where it is called `__proto__`. */
const set = (named, name, value) => Object.defineProperty(named, name, { value, enumerable: true, configurable: true, writable: true });

const VERSION = "1";
const MISSING = "~";

const encode = (value) => encodeURIComponent(value).replace(/%20/g, "+");
const decode = (text) => decodeURIComponent(text.replace(/\+/g, " "));
const said = (value) => (value === null ? MISSING : encode(String(value).replace(/^~/, "~~")));

function valueOf(feature, text) {
  if (text === MISSING) return null;
  const plain = decode(text).replace(/^~~/, "~");
  if (feature.kind === "number") return numberOf(plain);
  const level = feature.levels.find((one) => String(one.value) === plain);
  if (!level) throw new Error(plain);
  return level.value;
}
function numberOf(text) {
  if (text === "" || !Number.isFinite(Number(text))) throw new Error(text);
  return Number(text);
}

/** A short name of a plan: a digest of what it changes. */
export function digest(plan) {
  let hash = 0x811c9dc5;
  for (const sign of JSON.stringify(plan.changes.map((one) => [one.feature, one.after]))) {
    hash = Math.imul(hash ^ sign.codePointAt(0), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, "0");
}

// -- writing ---------------------------------------------------------------------------------------------------

export function write(wish, model, rest = []) {
  const found = [["v", VERSION]];
  const add = (key, value) => found.push([key, value]);
  const names = (key, list) => list.length && add(key, list.map(encode).join(","));
  const each = (key, named, text) => Object.entries(named).forEach(([name, value]) => add(`${key}.${encode(name)}`, text(value)));
  if (model) add("model", model.fingerprint.slice(0, 8));
  if (wish.own) add("own", "1");
  else if (wish.person !== null) add("person", encode(wish.person));
  if (wish.want !== null) add("want", encode(wish.want));
  add("most", wish.most ?? "any");
  if (wish.p !== null) add("p", wish.p);
  if (wish.sure !== null) add("sure", wish.sure);
  if (wish.n !== START.n) add("plans", wish.n);
  names("freeze", wish.freeze);
  each("range", wish.range, ([low, high]) => `${low ?? ""}..${high ?? ""}`);
  for (const way of ["up", "down"]) names(way, Object.keys(wish.way).filter((name) => wish.way[name] === way));
  each("only", wish.only, (values) => values.map(said).join(","));
  names("known", wish.known);
  for (const how of ["easy", "hard"]) names(how, Object.keys(wish.effort).filter((name) => wish.effort[name] === how));
  if (wish.budget !== null) add("effort", wish.budget);
  wish.rules.forEach((rule) => add("rule", encode(rule)));
  each("step", wish.step, String);
  if (wish.strict) add("strict", "1");
  names("lift", wish.lift);
  each("pin", wish.pin, said);
  each("hand", wish.hand, said);
  wish.not.forEach(({ feature, value }) => add(`not.${encode(feature)}`, said(value)));
  if (wish.plan) add("plan", wish.plan);
  add("seed", wish.seed);
  return `#${[...found, ...rest].map((pair) => pair.join("=")).join("&")}`;
}

// -- reading ---------------------------------------------------------------------------------------------------

const LISTS = { freeze: "freeze", known: "known", lift: "lift" };
const NUMBERS = { p: "p", sure: "sure", plans: "n", effort: "budget", seed: "seed" };

/** What a link asks: the wish, the parts that could not be read, and whether it was made with another model. */
export function read(hash, model) {
  const wish = structuredClone({ ...START });
  const unread = [];
  let other = false;
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [key, text = ""] = split(part, "=");
    try {
      if (key === "model") other = text !== model.fingerprint.slice(0, 8);
      else readPart(wish, model, key, text);
    } catch {
      unread.push([key, text]);
    }
  }
  return { wish, unread, other };
}

const split = (text, sign) => {
  const at = text.indexOf(sign);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
};

function readPart(wish, model, key, text) {
  const [field, rawName] = split(key, ".");
  const feature = (name) => {
    const found = model.features.find((one) => one.name === name);
    if (!found) throw new Error(name);
    return found;
  };
  const names = () => text.split(",").map(decode).map((name) => feature(name).name);
  if (rawName !== undefined) return readOf(wish, field, feature(decode(rawName)), text);
  if (field === "v") return must(text === VERSION);
  if (field === "own") return;
  if (field === "person") wish.person = decode(text);
  else if (field === "want") wish.want = classOf(model, decode(text));
  else if (field === "most") wish.most = text === "any" ? null : whole(text);
  else if (field === "lift") wish.lift = text.split(",").map(decode);
  else if (Object.hasOwn(LISTS, field)) wish[LISTS[field]] = names();
  else if (Object.hasOwn(NUMBERS, field)) wish[NUMBERS[field]] = numberOf(text);
  else if (field === "up" || field === "down") names().forEach((name) => set(wish.way, name, field));
  else if (field === "easy" || field === "hard") names().forEach((name) => set(wish.effort, name, field));
  else if (field === "rule") wish.rules.push(decode(text));
  else if (field === "strict") wish.strict = text === "1";
  else if (field === "plan") wish.plan = text;
  else throw new Error(field);
}

function readOf(wish, field, feature, text) {
  const { name } = feature;
  if (field === "range") {
    const ends = text.split("..").map((end) => (end === "" ? null : numberOf(end)));
    must(ends.length === 2 && feature.kind === "number");
    set(wish.range, name, ends);
  } else if (field === "only") set(wish.only, name, text.split(",").map((one) => valueOf(feature, one)));
  else if (field === "step") set(wish.step, name, numberOf(text));
  else if (field === "pin" || field === "hand") set(wish[field], name, valueOf(feature, text));
  else if (field === "not") wish.not.push({ feature: name, value: valueOf(feature, text) });
  else throw new Error(field);
}

const must = (holds) => {
  if (!holds) throw new Error();
};
const whole = (text) => {
  must(/^\d+$/.test(text));
  return Number(text);
};
const classOf = (model, text) => {
  const at = model.classes.findIndex((label) => String(label) === text);
  must(at >= 0);
  return model.classes[at];
};
