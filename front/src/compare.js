// Saved plans side by side.
import { change } from "./history.js";
import { read } from "./link.js";
import { keep } from "./saved.js";
import { dialog, drawer, features, model, saved } from "./state.js";
import { numeral, t } from "./texts.js";
import { shown, told } from "./values.js";

/** Only what any of them changes. */
export function Saved() {
  const list = saved.value;
  if (!list.length) return <p class="quiet">{t("saved.none")}</p>;
  const names = [...new Set(list.flatMap((one) => one.plan.changes.map((found) => found.feature)))];
  const cell = (one, name) => {
    const found = one.plan.changes.find((item) => item.feature === name);
    const feature = features.value.get(name);
    return found ? <strong>{told(feature, found.after_text, found.after)}</strong> : <span class="quiet">{shown(feature, one.before?.[name])}</span>;
  };
  return <div class="scroll" tabindex="0" role="region" aria-label={t("saved.title")}><table class="compare">
    <thead><tr><th scope="col">{t("saved.feature")}</th>{list.map((one, i) => <th scope="col" key={one.plan.key}>{i + 1}. {one.who} <span class="quiet">{numeral(one.plan.percent)} · {one.result}</span></th>)}</tr></thead>
    <tbody>{names.map((name) => <tr key={name}><th scope="row">{features.value.get(name)?.text ?? name}</th>{list.map((one) => <td>{cell(one, name)}</td>)}</tr>)}</tbody>
    <tfoot><tr><th scope="row"><span class="hidden">{t("saved.actions")}</span></th>{list.map((one, i) => <td><div class="actions">
      <button type="button" class="quiet" aria-label={t("saved.receipt", { n: i + 1 })} onClick={() => (dialog.value = { name: "receipt", plans: [one.plan], asking: JSON.parse(one.asking) })}>{t("receipt")}</button>
      <button type="button" class="quiet" aria-label={t("saved.back", { n: i + 1 })} onClick={() => goBack(one)}>{t("saved.open")}</button>
      <button type="button" class="quiet" aria-label={t("saved.drop", { n: i + 1 })} onClick={() => keep(list.filter((other) => other !== one))}>{t("saved.remove")}</button></div></td>)}</tr></tfoot>
  </table></div>;
}

/** The question that a saved plan answers. */
function goBack(one) {
  drawer.value = null;
  change({ ...read(one.hash, model.value).wish, own: JSON.parse(one.asking).values });
}
