// A range of a number, or of ordered words: two native sliders on one track, and two fields.
import { useMemo } from "preact/hooks";
import { change } from "./history.js";
import { maybeMissing, setOnly, setRange } from "./limits.js";
import { NumberField } from "./field.js";
import { scaleOf } from "./scale.js";
import { answer, score, wish } from "./state.js";
import { t } from "./texts.js";
import { Track } from "./track.js";
import { own, shown, withUnit } from "./values.js";

const said = (feature, key, value, open) => (open ? t(`${key}.open`) : t(key, { value: withUnit(feature, shown(feature, value)) }));

/** One of the two sliders. A press of a key always moves to another value, however fine the track. */
function Thumb({ feature, scale, end, value, other, onValue, disabled }) {
  const open = end === "low" ? scale.low : scale.high;
  const current = value ?? open;
  const move = (event) => {
    const to = Number(event.target.value);
    const was = scale.place(current);
    let next = scale.at(to);
    if (next === current && to !== was) next = step(scale, current, Math.sign(to - was));
    const bound = end === "low" ? Math.min : Math.max;
    const kept = other === null || feature.kind !== "number" ? next : bound(next, other);
    event.target.value = scale.place(kept);
    onValue(kept === open ? null : kept);
  };
  return <input type="range" class={`thumb ${end}`} min="0" max={scale.steps} step="1" value={scale.place(current)}
    disabled={disabled} aria-label={t(`range.${end}.name`, { feature: feature.text })}
    aria-valuetext={said(feature, `range.${end}`, current, value === null)} onInput={move} />;
}

const step = (scale, value, direction) =>
  typeof value === "number" ? Math.min(scale.high, Math.max(scale.low, value + direction * scale.smallest)) : value;

function Sliders({ feature, scale, low, high, onRange, now, disabled, children }) {
  const near = low !== null && scale.share(low) > 0.5;
  return <div class="range">
    <div class={near ? "sliders low-above" : "sliders"}>
      <Track feature={feature} scale={scale} now={now} low={low} high={high} pinned={own(wish.value.pin, feature.name)}
        strip={own(score.value?.strips, feature.name)} needed={answer.value?.needed ?? 0.5} reach={own(answer.value?.reach, feature.name)} />
      <Thumb feature={feature} scale={scale} end="low" value={low} other={high} disabled={disabled} onValue={(value) => onRange([value, high])} />
      <Thumb feature={feature} scale={scale} end="high" value={high} other={low} disabled={disabled} onValue={(value) => onRange([low, value])} />
    </div>
    <div class="ends">{children}</div><div class="edges" aria-hidden="true"><span>{shown(feature, scale.low)}</span><span>{shown(feature, scale.high)}</span></div>
  </div>;
}

/** Between two numbers; an end at the end of the track is no limit. */
export function NumberRange({ feature, now, disabled }) {
  const scale = useMemo(() => scaleOf(feature), [feature]);
  const [low, high] = own(wish.value.range, feature.name) ?? [null, null];
  const onRange = ([from, to]) => {
    const ordered = from !== null && to !== null && from > to ? [to, from] : [from, to];
    change(setRange(wish.value, feature.name, ordered));
  };
  const end = (name, value, open, set) => <NumberField class="end" value={value ?? open} disabled={disabled}
    aria-label={t(`range.${name}.name`, { feature: feature.text })} onValue={(next) => set(next === null || next === open ? null : next)} />;
  return <Sliders {...{ feature, scale, low, high, onRange, now, disabled }}>
    {end("low", low, scale.low, (value) => onRange([value, high]))}<span class="dash" aria-hidden="true">–</span>
    {end("high", high, scale.high, (value) => onRange([low, value]))}{feature.unit && <span class="unit">{feature.unit}</span>}
  </Sliders>;
}

/** Between two of some ordered words. */
export function WordRange({ feature, now, disabled }) {
  const scale = useMemo(() => scaleOf(feature), [feature]);
  const order = feature.levels.map((level) => level.value);
  const only = own(wish.value.only, feature.name)?.filter((value) => value !== null);
  const way = own(wish.value.way, feature.name);
  const [low, high] = only ? [only[0], only.at(-1)] : [null, null];
  const onRange = ([from, to]) => {
    const ends = [from === null ? 0 : order.indexOf(from), to === null ? order.length - 1 : order.indexOf(to)].sort((a, b) => a - b);
    const missing = feature.missing && maybeMissing(wish.value, feature.name) ? [null] : [];
    change(setOnly(wish.value, feature, [...order.slice(ends[0], ends[1] + 1), ...missing]));
  };
  const at = order.indexOf(now);
  const offered = (i) => at < 0 || (way === "up" ? i >= at : way === "down" ? i <= at : true);
  const word = (name, value, open, set) => <select class="end word" disabled={disabled} value={order.indexOf(value ?? open)}
      aria-label={t(`range.${name}.name`, { feature: feature.text })} onChange={(event) => set(order[Number(event.target.value)])}>
    {feature.levels.map((level, i) => (offered(i) || level.value === (value ?? open)) && <option value={i} selected={level.value === (value ?? open)}>{level.text}</option>)}
  </select>;
  return <Sliders {...{ feature, scale, low, high, onRange, now, disabled }}>
    {word("low", low, way === "up" && at >= 0 ? now : order[0], (value) => onRange([value, high]))}<span class="dash" aria-hidden="true">–</span>
    {word("high", high, way === "down" && at >= 0 ? now : order.at(-1), (value) => onRange([low, value]))}
  </Sliders>;
}
