// Wishes about plans as a whole: how many changes, of what kind, how sure, how many plans.
import { useState } from "preact/hooks";
import { Body } from "./body.js";
import { change } from "./history.js";
import { NumberField, Stepper } from "./field.js";
import { answer, model, resultText, view, wanted, wish } from "./state.js";
import { number, percent, t } from "./texts.js";

const TRACK = 100;

/** Few big changes … many small ones: the exponent on a track of its logarithm. */
function Kind() {
  const { least, most, usual } = model.value.exponents ?? {};
  if (!(most > least)) return null;
  const floor = least > 0 ? least : most / 1000;
  const place = (p) => (p <= floor ? 0 : Math.round((TRACK * Math.log(p / floor)) / Math.log(most / floor)));
  const at = (i) => (i <= 0 ? least : i >= TRACK ? most : Number((floor * (most / floor) ** (i / TRACK)).toPrecision(3)));
  const automatic = wish.value.p === null;
  const inUse = wish.value.p ?? answer.value?.p ?? usual;
  const value = place(inUse);
  const kind = t(value < 34 ? "kind.few" : value > 66 ? "kind.many" : "kind.between");
  const words = t(automatic ? "kind.automatic" : "kind.set", { kind, p: inUse });
  return <span class="wish kind"><label><span>{t("kind.few")}</span><input type="range" min="0" max={TRACK} step="1" value={value} aria-label={t("kind.name")} aria-valuetext={words}
    onInput={(event) => change({ p: at(Number(event.target.value)) })} /><span>{t("kind.many")}</span></label>
    {automatic ? <span class="in-use" title={words}>{t("automatic")}</span> : <><span class="in-use">{t("kind.p", { p: inUse })}</span> <button type="button" class="link" onClick={() => change({ p: null })}>{t("automatic")}</button></>}</span>;
}

// Labels are keys as Python writes them.
const keyOf = (label) => (typeof label === "boolean" ? (label ? "True" : "False") : String(label));

const NAMED = ["just", "safe", "sure"];
const SAME = 5e-4;

/** Which named level a confidence is; none for another number. */
const levelOf = (levels, confidence) => NAMED.find((name) => levels[name] && Math.abs(levels[name].confidence - confidence) < SAME);

/** How many of ten: "8 or 9", or "9" where that is all that the share says. */
function ofTen(share) {
  const [low, high] = [Math.floor(10 * share + 0.05), Math.ceil(10 * share - 0.05)];
  return low === high ? number(low) : t("level.between", { low, high });
}

/** The named levels, how many retrained models each would convince, and how much farther it is than the decision. */
function Lasting({ levels, confidence, set }) {
  const chosen = levelOf(levels, confidence);
  const one = levels[chosen];
  const farther = one && levels.just.distance > 0 && chosen !== "just" ? one.distance / levels.just.distance : 1;
  return <span class="wish"><label>{t("level.before")} <select value={chosen ?? ""} onChange={(event) => event.target.value && set(levels[event.target.value].confidence)}>
    {NAMED.map((name) => <option key={name} value={name} selected={name === chosen}>{t(`level.${name}`)}</option>)}
    {!chosen && <option value="" selected>{t("level.own")}</option>}</select></label>
    {one && <span class="quiet">{t("level.kept", { kept: ofTen(one.survival) })}{farther > 1.02 && ` ${t("level.price", { times: Number(farther.toFixed(1)) })}`}</span>}</span>;
}

/** At least so sure, within what the data support: by a named level, or a number. */
function Sure() {
  const [over, setOver] = useState(null);
  const bounds = model.value.confidence?.[keyOf(wanted())];
  if (!model.value.has_confidence || !bounds) return null;
  const choose = (share) => {
    const kept = share === null ? null : Math.min(bounds.highest, Math.max(bounds.lowest, share));
    setOver(share > bounds.highest + SAME ? "highest" : share !== null && share < bounds.lowest - SAME ? "lowest" : null);
    change({ sure: kept === null || Math.abs(kept - bounds.usual) < SAME ? null : kept });
  };
  const confidence = wish.value.sure ?? bounds.usual;
  const shown = Math.round(confidence * 1000) / 10;
  return <>{bounds.levels?.just?.survival !== undefined && <Lasting levels={bounds.levels} confidence={confidence} set={choose} />}
    <span class="wish"><label>{t("sure.before")} <NumberField value={shown} min="0" max="100" onValue={(value) => choose(value === null ? null : value / 100)} class="short" aria-label={t("sure.name")} /> {t("sure.after")}</label>
    {over && <span class="problem" role="alert">{t(`sure.${over}`, { percent: percent(bounds[over]), result: resultText(wanted()) })}</span>}</span></>;
}

export function Wishes() {
  const { more } = view.value;
  return <section class="wishes" aria-label={t("wishes")}>
    <span class="wish">{t("most.before")} <Stepper value={wish.value.most} min={1} max={model.value.features.length} label={t("most.name")} less={t("most.less")} more={t("most.more")} placeholder={t("most.any")} onValue={(most) => change({ most })} /> {t("most.after", { n: wish.value.most ?? 2 })}</span>
    <Kind /><Sure />
    <span class="wish"><Stepper value={wish.value.n} min={1} max={model.value.most_plans} label={t("plans.name")} less={t("plans.less")} more={t("plans.more")} onValue={(n) => change({ n })} /> {t("plans.after", { n: wish.value.n })}</span>
    <button type="button" class="quiet" onClick={() => change({ seed: wish.value.seed + 1 })}>{t("others")}</button>
    <button type="button" class="quiet" aria-expanded={more} aria-controls="more" onClick={() => (view.value = { ...view.value, more: !more })}>{t("more")} <span aria-hidden="true">{more ? "▾" : "▸"}</span></button>
    {more && <Body name="more" />}
  </section>;
}
