// The page's own words, and numbers as its language writes them. English comes with the page, others when spoken.
import { computed, signal } from "@preact/signals";
import en from "../texts/en.json";
import { localStorage, location, wordsOf } from "./host.js";

const files = { en };
export const LANGUAGES = { en: "English", de: "Deutsch" };
const PSEUDO = "zz"; // generated from English, to find what is not translated
const LETTERS = "aáeéiíoóuúnñcçyýAÁEÉIÍOÓUÚNÑCÇYÝ";

const known = (name) => (name === PSEUDO || name in LANGUAGES ? name : null);

/** The language that the link asks for, or that was chosen before, or that the browser speaks. */
export function preferred() {
  const asked = known(new URLSearchParams(location.search).get("lang"));
  if (asked) return asked;
  const kept = known(localStorage.getItem("dicoflex.language"));
  return kept ?? navigator.languages.map((name) => known(name.slice(0, 2))).find(Boolean) ?? "en";
}

export const language = signal("en");
/** What one row is called: the operator's word, "person" by default. */
export const noun = signal("person");

/** Learn the English words of what opens later. */
export const learn = (words) => Object.assign(en, words);

/** Speak another language, once its words are there; without them nothing changes. */
export async function speak(name) {
  if (name !== PSEUDO && !files[name]) files[name] = await wordsOf(name);
  if (name === PSEUDO || files[name]) language.value = name;
}

/** Speak it from now on. */
export async function choose(name) {
  await speak(name);
  localStorage.setItem("dicoflex.language", language.value);
}

const locale = computed(() => (language.value === PSEUDO ? "de" : language.value));
const counting = computed(() => new Intl.PluralRules(locale.value));
const pseudo = (text) =>
  `⟦${text.replace(/\{\w+\}|[a-z]/gi, (found) => (found.length > 1 ? found : LETTERS[LETTERS.indexOf(found) + 1 || -1] ?? found))}⟧`;

function template(key, n) {
  const text = (language.value === PSEUDO ? en : files[language.value])[key] ?? en[key] ?? key;
  const forms = text.split("|");
  const form = forms.length > 1 && counting.value.select(Number(n)) !== "one" ? forms[1] : forms[0];
  return language.value === PSEUDO ? pseudo(form) : form;
}

const word = () => (noun.value === "person" ? t("person") : noun.value);
const filling = (args, name) => {
  if (name === "person" && !(name in args)) return word();
  if (name === "aPerson") return `${/^[aeiou]/i.test(word()) ? "an" : "a"} ${word()}`;
  if (name === "Person") return word().replace(/^./, (first) => first.toUpperCase());
  const value = args[name];
  return typeof value === "number" ? number(value) : value;
};

export const has = (key) => key in en;

/** A text with its places filled; two forms with a bar between are for one and for more, by `n`. */
export function t(key, args = {}) {
  return template(key, args.n).replace(/\{(\w+)\}/g, (_, name) => filling(args, name) ?? "");
}

/** The same as a list, so that parts of it can be elements. */
export function parts(key, args) {
  return template(key, args.n).split(/\{(\w+)\}/).map((part, i) => (i % 2 ? filling(args, part) : part));
}

/** A number as the language writes it. */
export const number = (value, options) => new Intl.NumberFormat(locale.value, options).format(value);

/** A number that came as English text ("3,908.5", "83 %"), as the language writes it. */
export function numeral(text) {
  if (!/^[<>≥≤~−-]?\s*[\d.,]+(\s*%)?$/.test(text)) return text;
  const whole = text.replace(/ /g, "\u00a0");
  if (locale.value === "en") return whole;
  return whole.replace(/[.,]/g, (sign) => (sign === "," ? "." : ","));
}

/** A share of one as percent, never rounded up to certainty. */
export function percent(share) {
  if (share > 0.99 && share < 1) return `>\u00a0${number(99)}\u00a0%`;
  if (share > 0 && share < 0.01) return `<\u00a0${number(1)}\u00a0%`;
  return `${number(Math.round(share * 100))}\u00a0%`;
}

/** A share of who lacks the result, never as much as what it lacks. */
export function almost(lacks, share, text, needed, neededText) {
  if (!lacks) return text;
  if (share < 0.5 && Math.round(share * 100) === 50) return t("almost.half");
  return share < needed && text === neededText ? t("almost", { percent: text }) : text;
}

/** Joined as in a sentence: a, b and c. */
export const list = (items) => new Intl.ListFormat(locale.value, { type: "conjunction" }).format(items);
export const either = (items) => new Intl.ListFormat(locale.value, { type: "disjunction" }).format(items);
export const day = () => new Date().toLocaleDateString(locale.value === "en" ? "en-GB" : locale.value, { day: "numeric", month: "long", year: "numeric" });
