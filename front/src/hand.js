// By hand: a value of one's own for every feature, the decision that follows, and pins that plans must keep.
import { useState } from "preact/hooks";
import { change } from "./history.js";
import { NumberField } from "./field.js";
import * as icons from "./icons.js";
import { broken, setHand, setPin, setRange } from "./limits.js";
import { model, score, values, wish } from "./state.js";
import { numeral, t } from "./texts.js";
import { has, own, shown } from "./values.js";
import { classes } from "./view.js";

const FEW = 12;

export const handValue = (name) => (has(wish.value.hand, name) ? wish.value.hand[name] : own(values.value, name) ?? null);
const set = (feature, value) => change(setHand(wish.value, feature.name, value, values.value[feature.name]));
const pin = (feature) => change(setPin(wish.value, feature.name, handValue(feature.name)));

/** The value nearest in spelling, for what was never seen. */
function nearest(feature, text) {
  const sought = text.toLocaleLowerCase();
  const shared = (level) => [...level.text.toLocaleLowerCase()].findIndex((sign, i) => sign !== sought[i]);
  const score = (level) => (level.text.toLocaleLowerCase().includes(sought) ? 1000 : shared(level) < 0 ? 999 : shared(level));
  return feature.levels.reduce((best, level) => (score(level) > score(best) ? level : best), feature.levels[0]);
}

function Typed({ feature, label }) {
  const [open, setOpen] = useState(false);
  const [unknown, setUnknown] = useState(null);
  const id = `levels-${model.value.features.indexOf(feature)}`;
  const enter = (event) => {
    const level = feature.levels.find((one) => one.text === event.target.value);
    setUnknown(level ? null : event.target.value);
    if (level) set(feature, level.value);
  };
  return <><input class="hand-value" list={id} aria-label={label} aria-invalid={unknown !== null} value={unknown ?? shown(feature, handValue(feature.name))} onFocus={() => setOpen(true)} onChange={enter} />
    {open && <datalist id={id}>{feature.levels.map((level) => <option value={level.text} />)}</datalist>}
    {unknown !== null && <p class="problem">{t("hand.unknown", { value: unknown, feature: feature.text, near: nearest(feature, unknown).text })}</p>}</>;
}

function Value({ feature }) {
  const value = handValue(feature.name);
  const label = t("hand.name", { feature: feature.text });
  if (feature.kind === "number") return <NumberField class="hand-value" live value={value} aria-label={label} placeholder={t("missing")}
    onValue={(next) => (next !== null || feature.missing) && set(feature, next)} onEnter={() => !has(wish.value.pin, feature.name) && pin(feature)} />;
  if (feature.levels.length > FEW) return <Typed feature={feature} label={label} />;
  const offered = [...feature.levels.map((level) => level.value), ...(feature.missing || value === null ? [null] : [])];
  return <select class="hand-value" aria-label={label} value={offered.indexOf(value)} onChange={(event) => set(feature, offered[Number(event.target.value)])}
      onKeyDown={(event) => event.key === "Enter" && !has(wish.value.pin, feature.name) && pin(feature)}>
    {offered.map((one, i) => <option value={i} selected={one === value}>{shown(feature, one)}</option>)}</select>;
}

/** The sentence where a value by hand breaks a limit; the value is kept. */
function Broken({ feature }) {
  const value = handValue(feature.name);
  const why = broken({ ...wish.value, pin: {} }, feature, value, values.value?.[feature.name]);
  if (!why) return null;
  const [low, high] = own(wish.value.range, feature.name) ?? [];
  const move = () => change(setRange(wish.value, feature.name, [low === null ? null : Math.min(low, value), high === null ? null : Math.max(high, value)]));
  const say = (end) => (end === null || end === undefined ? "" : shown(feature, end));
  const key = why !== "range" ? "broken" : low === null ? "above" : high === null ? "below" : "range";
  const text = t(`hand.${key}`, { value: shown(feature, value), low: say(low), high: say(high) });
  return <p class="problem">{text} {why === "range" && <button type="button" class="link" onClick={move}>{t("hand.move")}</button>}</p>;
}

/** The cell of a feature in the column "by hand". */
export function Hand({ feature }) {
  if (!values.value) return <span class="quiet">…</span>;
  if (feature.locked) return <span class="quiet">{shown(feature, values.value[feature.name])}</span>;
  const held = has(wish.value.pin, feature.name);
  return <><div class={classes("hand", has(wish.value.hand, feature.name) && "edited", held && "held")}><Value feature={feature} />
    <button type="button" class="icon-button pin" aria-pressed={held} aria-label={t("pin.name", { feature: feature.text })} title={t("pin.title")} onClick={() => pin(feature)}>{icons.pin(held)}</button></div>
    <Broken feature={feature} /></>;
}

export const handCount = () => Object.keys(wish.value.hand).length;
export const handPercent = () => (score.value ? numeral(score.value.percent) : "…");

/** Pin what was changed by hand, so that every plan has it. */
export const finish = () => change({ pin: { ...wish.value.pin, ...wish.value.hand } });
export const clearHand = () => change({ hand: {}, pin: {} });

export function HandActions() {
  return <div class="actions">
    <button type="button" class="main" disabled={!handCount()} onClick={finish}>{t("finish")}</button>
    {(handCount() > 0 || Object.keys(wish.value.pin).length > 0) && <button type="button" class="quiet" onClick={clearHand}>{t("hand.clear")}</button>}
  </div>;
}
