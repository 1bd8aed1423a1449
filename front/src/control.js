// What may be said about one feature: lock, range or values, direction, how hard, missing.
import { change } from "./history.js";
import { lock, maybeMissing, setEffort, setKnown, setWay } from "./limits.js";
import { Levels } from "./levels.js";
import { NumberRange, WordRange } from "./range.js";
import * as icons from "./icons.js";
import { wish } from "./state.js";
import { t } from "./texts.js";
import { has, own } from "./values.js";

const lockText = ({ locked }) => (locked === true ? t("locked") : locked);

/** Stays as it is, or may change. */
export function Lock({ feature }) {
  const held = wish.value.freeze.includes(feature.name);
  if (feature.locked) return <span class="lock owner" role="img" aria-label={t("lock.owner", { feature: feature.text })} title={lockText(feature)}>{icons.locked()}</span>;
  return <button type="button" class="lock" aria-pressed={held} aria-label={t("lock.name", { feature: feature.text })}
    title={held ? t("lock.open") : t("lock.close")} onClick={() => change(lock(wish.value, feature.name))}>{held ? icons.locked() : icons.unlocked()}</button>;
}

/** Any direction, only up or only down; for words, towards the last or the first. */
export function Way({ feature }) {
  if (feature.kind === "level") return null;
  const ends = feature.kind === "ordinal" ? [feature.levels.at(-1)?.text, feature.levels[0]?.text] : null;
  const text = (way, end) => (ends ? t("way.towards", { end }) : t(`way.${way}`));
  return <select class="small" value={own(wish.value.way, feature.name) ?? ""} aria-label={t("way.name", { feature: feature.text })}
      onChange={(event) => change(setWay(wish.value, feature.name, event.target.value))}>
    <option value="">{t("way.any")}</option><option value="up">{text("up", ends?.[0])}</option><option value="down">{text("down", ends?.[1])}</option>
  </select>;
}

/** How hard a change would be for this person. */
export function Effort({ feature }) {
  return <select class="small" value={own(wish.value.effort, feature.name) ?? "medium"} aria-label={t("effort.name", { feature: feature.text })}
      onChange={(event) => change(setEffort(wish.value, feature.name, event.target.value))}>
    {["easy", "medium", "hard"].map((how) => <option value={how}>{t(`effort.${how}`)}</option>)}
  </select>;
}

function Missing({ feature }) {
  const { way, range, step } = wish.value;
  const bound = [way, range, step].some((named) => has(named, feature.name));
  return <label class="missing"><input type="checkbox" disabled={bound} checked={!bound && maybeMissing(wish.value, feature.name)}
    onChange={() => change(setKnown(wish.value, feature.name))} /> <span>{t("missing.may")}</span></label>;
}

/** Range or values; a feature that stays as it is says so instead. */
export function Control({ feature, now }) {
  if (feature.locked) return <p class="stays">{lockText(feature)}</p>;
  if (wish.value.freeze.includes(feature.name)) return <p class="stays">{t("stays")}</p>;
  if (feature.kind === "level") return <Levels feature={feature} now={now} />;
  const Range = feature.kind === "ordinal" ? WordRange : NumberRange;
  return <><Range feature={feature} now={now} />{feature.missing && <Missing feature={feature} />}</>;
}
