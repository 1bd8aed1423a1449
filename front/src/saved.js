// Plans that were saved, kept for as long as the tab is open, side by side on request.
import { features, dialog, drawer, model, person, question, saved, target, resultText, values, wish } from "./state.js";
import { change } from "./history.js";
import { read } from "./link.js";
import { t, numeral } from "./texts.js";
import { told, shown } from "./values.js";
import { html } from "./view.js";

const KEY = "dicoflex.saved";
const MOST = 20;

export const isSaved = (plan, list) => list.some((one) => one.plan.key === plan.key && one.asking === (plan.asking ?? one.asking));

function keep(list) {
  saved.value = list;
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ model: model.value.fingerprint, list }));
  } catch {
    // A full or forbidden store: the plans stay for as long as the page is open.
  }
}

/** Saved plans of the same model. */
export function recall() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY));
    if (found?.model === model.value.fingerprint) saved.value = found.list;
  } catch {
    saved.value = [];
  }
}

/** Save a plan, with what it answers, or drop it. */
export function toggleSaved(plan) {
  if (isSaved(plan, saved.value)) return keep(saved.value.filter((one) => one.plan.key !== plan.key));
  const who = wish.value.own ? t("own.short") : person.value?.id ?? "";
  return keep([...saved.value, { plan, who, asking: question.value, hash: location.hash, result: resultText(target.value), before: values.value }].slice(-MOST));
}

/** Saved plans side by side: only what any of them changes. */
export function Saved() {
  const list = saved.value;
  if (!list.length) return html`<p class="quiet">${t("saved.none")}</p>`;
  const names = [...new Set(list.flatMap((one) => one.plan.changes.map((found) => found.feature)))];
  const cell = (one, name) => {
    const found = one.plan.changes.find((item) => item.feature === name);
    const feature = features.value.get(name);
    return found ? html`<strong>${told(feature, found.after_text, found.after)}</strong>` : html`<span class="quiet">${shown(feature, one.before?.[name])}</span>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("saved.title")}><table class="compare">
    <thead><tr><th scope="col">${t("saved.feature")}</th>${list.map((one, i) => html`<th scope="col" key=${one.plan.key}>${i + 1}. ${one.who} <span class="quiet">${numeral(one.plan.percent)} · ${one.result}</span></th>`)}</tr></thead>
    <tbody>${names.map((name) => html`<tr key=${name}><th scope="row">${features.value.get(name)?.text ?? name}</th>${list.map((one) => html`<td>${cell(one, name)}</td>`)}</tr>`)}</tbody>
    <tfoot><tr><th scope="row"><span class="hidden">${t("saved.actions")}</span></th>${list.map((one, i) => html`<td><div class="actions">
      <button type="button" class="quiet" aria-label=${t("saved.receipt", { n: i + 1 })} onClick=${() => (dialog.value = { name: "receipt", plans: [one.plan], asking: JSON.parse(one.asking) })}>${t("receipt")}</button>
      <button type="button" class="quiet" aria-label=${t("saved.back", { n: i + 1 })} onClick=${() => goBack(one)}>${t("saved.open")}</button>
      <button type="button" class="quiet" aria-label=${t("saved.drop", { n: i + 1 })} onClick=${() => keep(list.filter((other) => other !== one))}>${t("saved.remove")}</button></div></td>`)}</tr></tfoot>
  </table></div>`;
}

/** The question that a saved plan answers. */
function goBack(one) {
  drawer.value = null;
  change({ ...read(one.hash, model.value).wish, own: JSON.parse(one.asking).values });
}
