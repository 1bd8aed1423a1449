// Taking the question elsewhere: as a link, as Python, as JSON, as a command.
import { useState } from "preact/hooks";
import { location, notebook } from "./host.js";
import { askingOf, constraintsOf } from "./limits.js";
import { model, wanted, wish } from "./state.js";
import { t } from "./texts.js";

const python = (value) => {
  if (value === null) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
};
const quoted = (text) => (/^[\w.,:=%+-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);

function asPython() {
  const asking = askingOf(wish.value, model.value);
  const limits = Object.entries(asking.constraints).map(([key, value]) => `    ${key}=${key === "ranges" ? ranges(value) : python(value)},`);
  const pins = Object.keys(asking.pinned).length ? `\nlimits = limits.pin(${python(asking.pinned)})` : "";
  const rest = [["target", wanted()], ["n", asking.n], ["p", asking.p], ["confidence", asking.confidence]].filter(([, value]) => value !== null);
  return `limits = Constraints(\n${limits.join("\n")}\n)${pins}\nexplainer.explain(\n    row,\n${rest.map(([key, value]) => `    ${key}=${python(value)},`).join("\n")}\n    constraints=limits,\n    random_state=${asking.seed},\n)`;
}
const ranges = (found) => `{${Object.entries(found).map(([name, [low, high]]) => `${JSON.stringify(name)}: (${python(low)}, ${python(high)})`).join(", ")}}`;

const asJson = () => JSON.stringify({ ...askingOf({ ...wish.value, own: null, person: null }, model.value), person: undefined, values: undefined }, null, 2);

const FLAGS = {
  frozen: (found) => [["--freeze", found.join(",")]], increase: (found) => [["--increase", found.join(",")]], decrease: (found) => [["--decrease", found.join(",")]],
  ranges: (found) => Object.entries(found).map(([name, [low, high]]) => ["--range", `${name}=${low ?? ""}:${high ?? ""}`]),
  allowed: (found) => Object.entries(found).map(([name, list]) => ["--allow", `${name}=${list.map((one) => one ?? "missing").join(",")}`]),
  forbidden: (found) => Object.entries(found).map(([name, list]) => ["--forbid", `${name}=${list.map((one) => one ?? "missing").join(",")}`]),
  max_changes: (found) => [["--max-changes", String(found)]], max_cost: (found) => [["--max-cost", String(found)]],
  cost: (found) => Object.entries(found).map(([name, one]) => ["--cost", `${name}=${one}`]), steps: (found) => Object.entries(found).map(([name, one]) => ["--step", `${name}=${one}`]),
  rules: (found) => found.map((rule) => ["--rule", rule]), strict: () => [["--strict", ""]], override: (found) => [["--override", found.join(",")]],
};
function asCommand() {
  const asking = askingOf(wish.value, model.value);
  const flags = Object.entries(constraintsOf(wish.value, model.value)).flatMap(([key, value]) => FLAGS[key]?.(value) ?? []);
  const rest = [["--target", String(wanted())], ["--n", String(asking.n)], ["--p", asking.p], ["--confidence", asking.confidence], ["--seed", String(asking.seed)]].filter(([, value]) => value !== null);
  return `dicoflex explain m.dicoflex person.csv ${[...rest, ...flags].map(([flag, value]) => (value === "" ? flag : `${flag} ${quoted(String(value))}`)).join(" ")}`;
}

const FORMS = { ...(!notebook && { link: () => location.href }), python: asPython, json: asJson, command: asCommand };

export function Share() {
  const [form, setForm] = useState(Object.keys(FORMS)[0]);
  const [copied, setCopied] = useState(false);
  const text = FORMS[form]();
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return <><fieldset class="forms"><legend class="hidden">{t("share")}</legend>{Object.keys(FORMS).map((name) => <label><input type="radio" name="form" checked={form === name} onChange={() => (setForm(name), setCopied(false))} /> {t(`share.${name}`)}</label>)}</fieldset>
    {form === "link" && <p class="quiet">{t("share.private")}</p>}
    <textarea readonly rows="8" aria-label={t(`share.${form}`)} value={text}></textarea>
    <div class="row right"><span role="status">{copied ? t("copied") : ""}</span><button type="button" class="main" onClick={copy}>{t("copy")}</button></div></>;
}
