// Values of one's own, instead of a person of the file.
import { useState } from "preact/hooks";
import { change, forget } from "./history.js";
import { NumberField } from "./field.js";
import { dialog, model, values } from "./state.js";
import { t } from "./texts.js";
import { shown } from "./values.js";

/** What is most usual in the data, to start from. */
function usual(feature) {
  const counts = feature.marginal?.counts ?? [];
  const at = counts.indexOf(Math.max(...counts));
  if (feature.kind !== "number") return feature.levels[Math.max(0, at)]?.value ?? null;
  const middle = at < 0 ? feature.minimum : (feature.marginal.edges[at] + feature.marginal.edges[at + 1]) / 2;
  return feature.integer ? Math.round(middle) : middle;
}

function One({ feature, value, onValue, number }) {
  const id = `own-${number}`;
  const offered = feature.kind === "number" ? [] : [...feature.levels.map((level) => level.value), ...(feature.missing ? [null] : [])];
  return <div class="own-row"><label for={id}>{feature.text} {feature.unit && <small class="quiet">{feature.unit}</small>}</label>
    {feature.kind === "number" ? <NumberField id={id} value={value} placeholder={feature.missing ? t("missing") : ""} onValue={onValue} /> : <select id={id} value={offered.indexOf(value)} onChange={(event) => onValue(offered[Number(event.target.value)])}>
      {offered.map((level, i) => <option value={i} selected={level === value}>{shown(feature, level)}</option>)}</select>}</div>;
}

export function Own() {
  const { features } = model.value;
  const [own, setOwn] = useState(() => values.value ?? Object.fromEntries(features.map((feature) => [feature.name, usual(feature)])));
  const lacking = features.filter((feature) => own[feature.name] === null && !feature.missing);
  const use = () => {
    dialog.value = null;
    forget();
    change({ own, person: null, hand: {}, pin: {}, not: [], plan: null });
  };
  return <><p class="quiet">{t("own.about")}</p><div class="own">{features.map((feature, i) => <One key={feature.name} feature={feature} number={i} value={own[feature.name]} onValue={(value) => setOwn({ ...own, [feature.name]: value })} />)}</div>
    {lacking.length > 0 && <p class="problem">{t("own.lacking", { feature: lacking[0].text })}</p>}
    <div class="row right"><button type="button" class="main" disabled={lacking.length > 0} onClick={use}>{t("own.use")}</button></div></>;
}
