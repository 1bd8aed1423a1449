// Steps so far: what was changed, and a way back to each.
import { goTo, place, startOver, steps } from "./history.js";
import { features } from "./state.js";
import { number, t } from "./texts.js";
import { classes } from "./view.js";

/** Features in which two values of a field of the wish differ. */
function differing(before, after) {
  if (Array.isArray(after)) {
    const text = (one) => (typeof one === "string" ? one : one.feature);
    const [old, fresh] = [before.map(text), after.map(text)];
    return [...fresh.filter((one) => !old.includes(one)), ...old.filter((one) => !fresh.includes(one))];
  }
  if (after === null || typeof after !== "object") return [];
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])].filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after[name]));
}

function said(step) {
  if (!step) return t("step.earlier");
  const { before, after } = step;
  const keys = Object.keys(after).filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  const key = ["own", "person"].find((one) => keys.includes(one)) ?? keys[0];
  if (!key) return t("step.nothing");
  const names = differing(before[key], after[key]).map((name) => features.value.get(name)?.text ?? name);
  const value = typeof after[key] === "number" ? number(after[key]) : typeof after[key] === "string" ? after[key] : "";
  return t(`step.${key}`, { names: names.join(", "), value: key === "plan" ? "" : value });
}

export function StepsSoFar() {
  const { at, top } = place.value;
  const entries = [{ text: t("step.start") }, ...steps.value.map((step) => ({ text: said(step) }))].slice(0, top + 1);
  return <><ol class="steps">{entries.map((one, i) => <li key={i}><button type="button" class={classes("link", i === at && "held")} aria-current={i === at ? "step" : undefined} onClick={() => goTo(i)}>{one.text}</button></li>)}</ol>
    <button type="button" class="quiet" onClick={startOver}>{t("step.over")}</button></>;
}
