// On narrow screens: plans as cards side by side, one for each set of changes.
import { useLayoutEffect, useRef } from "preact/hooks";
import { line } from "./ask.js";
import { HandActions, handCount, handPercent } from "./hand.js";
import { PlanCard } from "./plans.js";
import { answer, dialog, inSight, plans, wish } from "./state.js";
import { t } from "./texts.js";
import { classes } from "./view.js";

const ROOM = 10;

/** What is read in words is the plan whose card is in sight, and the row is as high as that card. */
function follow(box) {
  const middle = box.scrollLeft + box.clientWidth / 2;
  const apart = (card) => Math.abs(card.offsetLeft + card.offsetWidth / 2 - middle);
  const [nearest] = [...box.querySelectorAll("[data-digest]")].sort((one, two) => apart(one) - apart(two));
  box.style.height = nearest ? `${nearest.offsetHeight + ROOM}px` : "";
  return nearest?.dataset.digest ?? null;
}

export function Cards() {
  const box = useRef(null);
  useLayoutEffect(() => {
    const cards = new ResizeObserver(() => follow(box.current));
    for (const card of box.current.children) cards.observe(card);
    return () => cards.disconnect();
  });
  const gone = ["gone", "ended"].includes(line.value.state);
  const groups = [...Map.groupBy(plans.value, (plan) => plan.set).values()];
  return <section class={classes("cards", gone && "gone")} aria-label={t("board")} data-seq={answer.value?.seq}>
    <button type="button" class="main wide" onClick={() => (dialog.value = { name: "limits" })}>{t("sheet.open")}</button>
    <ul class="snap" tabindex="0" ref={box} onScroll={(event) => (inSight.value = follow(event.currentTarget))}>{groups.map((group) => <PlanCard key={group[0].set} group={group} />)}
      {handCount() + Object.keys(wish.value.pin).length > 0 && <li class="card hand-card"><h2>{t("col.hand")} <span class="sure">{t("plan.sure", { percent: handPercent() })}</span></h2><p class="quiet">{t("plan.changes", { n: handCount() })}</p><HandActions /></li>}</ul></section>;
}
