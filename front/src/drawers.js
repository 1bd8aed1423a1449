// Drawers under the table, at most one of them open.
import { Body } from "./body.js";
import { answer, drawer, question, saved } from "./state.js";
import { t } from "./texts.js";
import { classes } from "./view.js";

const ALWAYS = ["saved", "cohort", "steps"];
const DRAWERS = ["costs", "curve", ...ALWAYS];

export function Drawers() {
  const open = drawer.value;
  const names = DRAWERS.filter((name) => question.value || ALWAYS.includes(name));
  return <section class="drawers" aria-label={t("drawers")}>
    <div class="handles">{names.map((name) => <button type="button" key={name} class={classes("handle", open === name && "open")} aria-expanded={open === name} aria-controls="drawer"
      onClick={() => (drawer.value = open === name ? null : name)}>{t(`drawer.${name}`, { n: saved.value.length })}</button>)}</div>
    {open && (answer.value || ALWAYS.includes(open)) && <div class="drawer" id="drawer" data-drawer={open}><h2>{t(`drawer.${open}`, { n: saved.value.length })}</h2><Body name={open} /></div>}
  </section>;
}
