// Values of a feature as people read them, with the same digits as the reports.
import { t, numeral } from "./texts.js";

/** Features may be called `constructor` or `__proto__`: only an object's own keys are theirs. */
export const has = (named, name) => Object.hasOwn(named ?? {}, name);
export const own = (named, name) => (has(named, name) ? named[name] : undefined);

const DIGITS = 4;
const [LOW, HIGH] = [1e-6, 1e15];

function english(value) {
  if (Number.isInteger(value) && Math.abs(value) < HIGH) return value.toLocaleString("en");
  if (Math.abs(value) < LOW || Math.abs(value) >= HIGH) return String(Number(value.toPrecision(DIGITS)));
  const decimals = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(20, decimals), roundingMode: "halfEven" });
}

export const levelOf = (feature, value) => feature.levels?.find((level) => level.value === value);

/** A value as text: separators in numbers, the word for missing, levels by their text. */
export function shown(feature, value) {
  if (value === null || value === undefined) return t("missing");
  if (feature.kind === "number") return numeral(english(value));
  return levelOf(feature, value)?.text ?? String(value);
}

/** With the unit, where there is one. */
export const withUnit = (feature, text) => (feature.unit ? `${text} ${feature.unit}` : text);

/** A text of the engine's about a value of this feature, as this language writes it. */
export const told = (feature, text, value) =>
  value === null ? t("missing") : feature?.kind === "number" ? numeral(text) : text;
