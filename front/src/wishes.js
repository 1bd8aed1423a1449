// Wishes about plans as a whole: how many changes, of what kind, how sure, how many plans, and more.
import { useState } from "preact/hooks";
import { change } from "./history.js";
import { NumberField, Stepper } from "./field.js";
import { model, resultText, view, wanted, wish } from "./state.js";
import { percent, t } from "./texts.js";
import { html } from "./view.js";

const TRACK = 100;

/** Few big changes … many small ones: the exponent on a track of its logarithm. */
function Kind() {
  const { least, most, usual } = model.value.exponents ?? {};
  if (!(most > least)) return null;
  const floor = least > 0 ? least : most / 1000;
  const place = (p) => (p <= floor ? 0 : Math.round((TRACK * Math.log(p / floor)) / Math.log(most / floor)));
  const at = (i) => (i <= 0 ? least : i >= TRACK ? most : Number((floor * (most / floor) ** (i / TRACK)).toPrecision(3)));
  const value = place(wish.value.p ?? usual);
  const words = t(value < 34 ? "kind.few" : value > 66 ? "kind.many" : "kind.between");
  return html`<label class="wish kind"><span>${t("kind.few")}</span><input type="range" min="0" max=${TRACK} step="1" value=${value} aria-label=${t("kind.name")} aria-valuetext=${words}
    onInput=${(event) => change({ p: at(Number(event.target.value)) })} /><span>${t("kind.many")}</span></label>`;
}

// Labels are keys as Python writes them.
const keyOf = (label) => (typeof label === "boolean" ? (label ? "True" : "False") : String(label));

/** At least so sure, within what the data support. */
function Sure() {
  const [over, setOver] = useState(null);
  const bounds = model.value.confidence?.[keyOf(wanted())];
  if (!model.value.has_confidence || !bounds) return null;
  const set = (value) => {
    const share = value === null ? null : value / 100;
    const kept = share === null ? null : Math.min(bounds.highest, Math.max(bounds.lowest, share));
    setOver(share > bounds.highest ? "highest" : share !== null && share < bounds.lowest ? "lowest" : null);
    change({ sure: kept === bounds.usual ? null : kept });
  };
  const shown = Math.round((wish.value.sure ?? bounds.usual) * 1000) / 10;
  return html`<span class="wish"><label>${t("sure.before")} <${NumberField} value=${shown} min="0" max="100" onValue=${set} class="short" aria-label=${t("sure.name")} /> ${t("sure.after")}</label>
    ${over && html`<span class="problem" role="alert">${t(`sure.${over}`, { percent: percent(bounds[over]), result: resultText(wanted()) })}</span>`}</span>`;
}

export function Wishes() {
  const { more } = view.value;
  return html`<section class="wishes" aria-label=${t("wishes")}>
    <span class="wish">${t("most.before")} <${Stepper} value=${wish.value.most} min=${1} max=${model.value.features.length} label=${t("most.name")} less=${t("most.less")} more=${t("most.more")} placeholder=${t("most.any")} onValue=${(most) => change({ most })} /> ${t("most.after", { n: wish.value.most ?? 2 })}</span>
    <${Kind} /><${Sure} />
    <span class="wish"><${Stepper} value=${wish.value.n} min=${1} max=${model.value.most_plans} label=${t("plans.name")} less=${t("plans.less")} more=${t("plans.more")} onValue=${(n) => change({ n })} /> ${t("plans.after", { n: wish.value.n })}</span>
    <button type="button" class="quiet" onClick=${() => change({ seed: wish.value.seed + 1 })}>${t("others")}</button>
    <button type="button" class="quiet" aria-expanded=${more} aria-controls="more" onClick=${() => (view.value = { ...view.value, more: !more })}>${t("more")} <span aria-hidden="true">${more ? "▾" : "▸"}</span></button>
    ${more && html`<${More} />`}
  </section>`;
}

// -- more ---------------------------------------------------------------------------------------------------------

function Adder({ name, label, hint, onAdd }) {
  const [text, setText] = useState("");
  const add = () => text.trim() && (onAdd(text.trim()), setText(""));
  return html`<span class="adder"><input id=${name} aria-label=${label} placeholder=${hint} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && add()} />
    <button type="button" class="quiet" onClick=${add}>${t("add")}</button></span>`;
}

const Chip = ({ text, label, onDrop }) => html`<li class="chip"><span>${text}</span><button type="button" aria-label=${label} onClick=${onDrop}>×</button></li>`;

function Rules() {
  const { rules } = wish.value;
  return html`<div><h2>${t("rules")}</h2><p class="quiet">${t("rules.about")}</p>
    <ul class="chips">${rules.map((rule) => html`<${Chip} key=${rule} text=${rule} label=${t("rules.drop", { rule })} onDrop=${() => change({ rules: rules.filter((one) => one !== rule) })} />`)}</ul>
    <${Adder} name="rule" label=${t("rules.name")} hint=${t("rules.hint")} onAdd=${(rule) => change({ rules: [...rules.filter((one) => one !== rule), rule] })} /></div>`;
}

function Steps() {
  const numbers = model.value.features.filter((feature) => feature.kind === "number" && !feature.locked);
  const [name, setName] = useState(numbers[0]?.name);
  const { step } = wish.value;
  if (!numbers.length) return null;
  const drop = (gone) => change({ step: Object.fromEntries(Object.entries(step).filter(([key]) => key !== gone)) });
  const textOf = (one) => numbers.find((feature) => feature.name === one)?.text ?? one;
  return html`<div><h2>${t("steps.only")}</h2>
    <ul class="chips">${Object.entries(step).map(([one, by]) => html`<${Chip} key=${one} text=${t("limit.step", { feature: textOf(one), step: by })} label=${t("steps.drop", { feature: textOf(one) })} onDrop=${() => drop(one)} />`)}</ul>
    <span class="adder"><select aria-label=${t("steps.feature")} value=${name} onChange=${(event) => setName(event.target.value)}>${numbers.map((feature) => html`<option value=${feature.name}>${feature.text}</option>`)}</select>
    <${Adder} name="step" label=${t("steps.by")} hint="100" onAdd=${(text) => Number(text) > 0 && change({ step: { ...step, [name]: Number(text) } })} /></span></div>`;
}

function More() {
  const { own } = model.value;
  return html`<div class="more" id="more">
    <div><h2>${t("budget")}</h2><p class="quiet">${t("budget.about")}</p><label>${t("budget.before")} <${NumberField} class="short" min="0" value=${wish.value.budget} placeholder=${t("most.any")} aria-label=${t("budget.name")} onValue=${(budget) => change({ budget: budget === null ? null : Math.max(0, budget) })} /></label></div>
    <${Rules} /><${Steps} />
    <div><h2>${t("manner")}</h2>
      <label class="line"><input type="checkbox" checked=${wish.value.strict} onChange=${() => change({ strict: !wish.value.strict })} /> <span>${t("strict")}</span></label>
      <label class="line">${t("seed")} <${NumberField} class="short" min="0" step="1" value=${wish.value.seed} aria-label=${t("seed.name")} onValue=${(seed) => change({ seed: Math.max(0, Math.round(seed ?? 0)) })} /></label></div>
    <div><h2>${t("owner")}</h2>${own.sentences.length ? html`<ul class="plain">${own.sentences.map((text) => html`<li key=${text}>${text}</li>`)}</ul>` : html`<p class="quiet">${t("owner.none")}</p>`}</div>
  </div>`;
}
