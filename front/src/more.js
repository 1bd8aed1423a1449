// More wishes: a total effort, rules, round numbers, how limits bind.
import { useState } from "preact/hooks";
import { change } from "./history.js";
import { NumberField } from "./field.js";
import { model, wish } from "./state.js";
import { t } from "./texts.js";

function Adder({ name, label, hint, onAdd }) {
  const [text, setText] = useState("");
  const add = () => text.trim() && (onAdd(text.trim()), setText(""));
  return <span class="adder"><input id={name} aria-label={label} placeholder={hint} value={text} onInput={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === "Enter" && add()} />
    <button type="button" class="quiet" onClick={add}>{t("add")}</button></span>;
}

const Chip = ({ text, label, onDrop }) => <li class="chip"><span>{text}</span><button type="button" aria-label={label} onClick={onDrop}>×</button></li>;

function Rules() {
  const { rules } = wish.value;
  return <div><h2>{t("rules")}</h2><p class="quiet">{t("rules.about")}</p>
    <ul class="chips">{rules.map((rule) => <Chip key={rule} text={rule} label={t("rules.drop", { rule })} onDrop={() => change({ rules: rules.filter((one) => one !== rule) })} />)}</ul>
    <Adder name="rule" label={t("rules.name")} hint={t("rules.hint")} onAdd={(rule) => change({ rules: [...rules.filter((one) => one !== rule), rule] })} /></div>;
}

function Steps() {
  const numbers = model.value.features.filter((feature) => feature.kind === "number" && !feature.locked);
  const [name, setName] = useState(numbers[0]?.name);
  const { step } = wish.value;
  if (!numbers.length) return null;
  const drop = (gone) => change({ step: Object.fromEntries(Object.entries(step).filter(([key]) => key !== gone)) });
  const textOf = (one) => numbers.find((feature) => feature.name === one)?.text ?? one;
  return <div><h2>{t("steps.only")}</h2>
    <ul class="chips">{Object.entries(step).map(([one, by]) => <Chip key={one} text={t("limit.step", { feature: textOf(one), step: by })} label={t("steps.drop", { feature: textOf(one) })} onDrop={() => drop(one)} />)}</ul>
    <span class="adder"><select aria-label={t("steps.feature")} value={name} onChange={(event) => setName(event.target.value)}>{numbers.map((feature) => <option value={feature.name}>{feature.text}</option>)}</select>
    <Adder name="step" label={t("steps.by")} hint="100" onAdd={(text) => Number(text) > 0 && change({ step: { ...step, [name]: Number(text) } })} /></span></div>;
}

export function More() {
  return <div class="more" id="more">
    <div><h2>{t("budget")}</h2><p class="quiet">{t("budget.about")}</p><label>{t("budget.before")} <NumberField class="short" min="0" value={wish.value.budget} placeholder={t("most.any")} aria-label={t("budget.name")} onValue={(budget) => change({ budget: budget === null ? null : Math.max(0, budget) })} /></label></div>
    <Rules /><Steps />
    <div><h2>{t("manner")}</h2>
      <label class="line"><input type="checkbox" checked={wish.value.strict} onChange={() => change({ strict: !wish.value.strict })} /> <span>{t("strict")}</span></label>
      <label class="line">{t("seed")} <NumberField class="short" min="0" step="1" value={wish.value.seed} aria-label={t("seed.name")} onValue={(seed) => change({ seed: Math.max(0, Math.round(seed ?? 0)) })} /></label></div>
  </div>;
}
