// On narrow screens: plans as cards side by side, and the limits on a sheet of their own.
import { useState } from "preact/hooks";
import { line } from "./ask.js";
import { Control, Effort, Lock, Way } from "./control.js";
import { Hand, HandActions, handCount, handPercent } from "./hand.js";
import { PlanCard } from "./plans.js";
import { answer, dialog, features, model, plans, values, view, wish } from "./state.js";
import { Now, Problem, rowsShown } from "./table.js";
import { t } from "./texts.js";
import { classes, html } from "./view.js";
import { Wishes } from "./wishes.js";

const STEP = 40;

export function Cards() {
  const gone = line.value.state === "gone";
  return html`<section class=${classes("cards", gone && "gone")} aria-label=${t("board")} data-seq=${answer.value?.seq}>
    <ul class="snap" tabindex="0">${plans.value.map((plan) => html`<${PlanCard} key=${plan.key} plan=${plan} features=${features.value} />`)}
      ${handCount() + Object.keys(wish.value.pin).length > 0 && html`<li class="card hand-card"><h3>${t("col.hand")} <span class="sure">${t("plan.sure", { percent: handPercent() })}</span></h3><p class="quiet">${t("plan.changes", { n: handCount() })}</p><${HandActions} /></li>`}</ul>
    <button type="button" class="main wide" onClick=${() => (dialog.value = { name: "limits" })}>${t("sheet.open")}</button></section>`;
}

function One({ feature }) {
  const held = feature.locked || wish.value.freeze.includes(feature.name);
  return html`<li class=${classes("limit", held && "locked")} data-feature=${feature.name}>
    <div class="feature"><${Lock} feature=${feature} /><span class="name">${feature.text}</span><span class="now-value"><${Now} feature=${feature} /></span></div>
    <${Control} feature=${feature} now=${values.value?.[feature.name] ?? null} />
    ${!held && html`<div class="manner"><${Way} feature=${feature} /><${Effort} feature=${feature} /></div><details><summary>${t("col.hand")}</summary><${Hand} feature=${feature} /></details>`}
    ${feature.limits.map((text) => html`<p class="quiet own">${text}</p>`)}<${Problem} feature=${feature} /></li>`;
}

/** The sheet: one feature per row, with the count always in sight. */
export function Sheet() {
  const [most, setMost] = useState(STEP);
  const rows = rowsShown(model.value.features);
  return html`<p class="count" data-found=${answer.value?.found}>${answer.value ? (answer.value.plans.length ? t("status.found", { n: answer.value.found }) : t("status.none")) : "…"}</p>
    <${Wishes} />
    <input type="search" aria-label=${t("search.features")} placeholder=${t("search.features")} value=${view.value.search} onInput=${(event) => (view.value = { ...view.value, search: event.target.value })} />
    <ul class="limit-list">${rows.slice(0, most).map((feature) => html`<${One} key=${feature.name} feature=${feature} />`)}</ul>
    ${rows.length > most && html`<button type="button" class="quiet" onClick=${() => setMost(most + STEP)}>${t("sheet.more", { n: rows.length - most })}</button>`}`;
}
