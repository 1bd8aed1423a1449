// On narrow screens, the limits: a sheet with one feature per row.
import { useState } from "preact/hooks";
import { Name, isOpen, opens } from "./fold.js";
import { Control, Effort, Lock, Way } from "./control.js";
import { Hand } from "./hand.js";
import { Owner, OwnerMark } from "./owner.js";
import { answer, model, resultText, target, values, view, wish } from "./state.js";
import { nothing } from "./status.js";
import { Now, Problem, rowsShown } from "./table.js";
import { t } from "./texts.js";
import { Key } from "./track.js";
import { classes } from "./view.js";
import { Wishes } from "./wishes.js";

const STEP = 40;

function One({ feature }) {
  const held = feature.locked || wish.value.freeze.includes(feature.name);
  return <li class={classes("limit", held && "locked", !isOpen(feature) && "folded")} data-feature={feature.name}>
    <div class="feature"><Lock feature={feature} /><Name feature={feature} fixed={held} /><span class="now-value"><Now feature={feature} /></span></div>
    <div class="control" {...opens(feature)}><Control feature={feature} now={values.value?.[feature.name] ?? null} /></div>
    {!held && <><div class="manner"><Way feature={feature} /><Effort feature={feature} /></div><details><summary>{t("col.hand")}</summary><Hand feature={feature} /></details></>}
    <OwnerMark feature={feature} /><Problem feature={feature} /></li>;
}

/** The sheet: one feature per row, with the count always in sight. */
export function Sheet() {
  const [most, setMost] = useState(STEP);
  const rows = rowsShown(model.value.features);
  return <><p class="count" data-found={answer.value?.found}>{answer.value ? (answer.value.plans.length ? t("status.found", { n: answer.value.found }) : nothing(answer.value, resultText(target.value))) : "…"}</p>
    <Wishes /><Owner /><Key />
    <input type="search" aria-label={t("search.features")} placeholder={t("search.features")} value={view.value.search} onInput={(event) => (view.value = { ...view.value, search: event.target.value })} />
    <ul class="limit-list">{rows.slice(0, most).map((feature) => <One key={feature.name} feature={feature} />)}</ul>
    {rows.length > most && <button type="button" class="quiet" onClick={() => setMost(most + STEP)}>{t("sheet.more", { n: rows.length - most })}</button>}</>;
}
