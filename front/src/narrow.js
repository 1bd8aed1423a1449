// On narrow screens: plans as cards side by side.
import { line } from "./ask.js";
import { HandActions, handCount, handPercent } from "./hand.js";
import { PlanCard } from "./plans.js";
import { answer, dialog, features, plans, wish } from "./state.js";
import { t } from "./texts.js";
import { classes } from "./view.js";

export function Cards() {
  const gone = line.value.state === "gone";
  return <section class={classes("cards", gone && "gone")} aria-label={t("board")} data-seq={answer.value?.seq}>
    <ul class="snap" tabindex="0">{plans.value.map((plan) => <PlanCard key={plan.key} plan={plan} features={features.value} />)}
      {handCount() + Object.keys(wish.value.pin).length > 0 && <li class="card hand-card"><h3>{t("col.hand")} <span class="sure">{t("plan.sure", { percent: handPercent() })}</span></h3><p class="quiet">{t("plan.changes", { n: handCount() })}</p><HandActions /></li>}</ul>
    <button type="button" class="main wide" onClick={() => (dialog.value = { name: "limits" })}>{t("sheet.open")}</button></section>;
}
