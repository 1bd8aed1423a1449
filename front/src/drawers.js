// Drawers under the table, at most one of them open.
import { answer, drawer, question, saved } from "./state.js";
import { Cohort } from "./cohort.js";
import { Costs } from "./costs.js";
import { Curve } from "./curve.js";
import { Saved } from "./saved.js";
import { StepsSoFar } from "./steps.js";
import { t } from "./texts.js";
import { classes, html } from "./view.js";

const ALWAYS = ["saved", "cohort", "steps"];
const DRAWERS = { costs: Costs, curve: Curve, saved: Saved, cohort: Cohort, steps: StepsSoFar };

export function Drawers() {
  const open = drawer.value;
  const Body = DRAWERS[open];
  const names = Object.keys(DRAWERS).filter((name) => question.value || ALWAYS.includes(name));
  return html`<section class="drawers" aria-label=${t("drawers")}>
    <div class="handles">${names.map((name) => html`<button type="button" key=${name} class=${classes("handle", open === name && "open")} aria-expanded=${open === name} aria-controls="drawer"
      onClick=${() => (drawer.value = open === name ? null : name)}>${t(`drawer.${name}`, { n: saved.value.length })}</button>`)}</div>
    ${Body && (answer.value || ALWAYS.includes(open)) && html`<div class="drawer" id="drawer" data-drawer=${open}><h2>${t(`drawer.${open}`, { n: saved.value.length })}</h2><${Body} /></div>`}
  </section>`;
}
