// The one table: what may change, in rows, and the plans beside it, in columns.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { line } from "./ask.js";
import { Name, isOpen, opens } from "./fold.js";
import { calm } from "./history.js";
import { isLimited } from "./limits.js";
import { Control, Effort, Lock, Way } from "./control.js";
import { Hand, HandActions, handCount, handPercent } from "./hand.js";
import { OwnerMark } from "./owner.js";
import { Actions, PlanCell, PlanHead, feet } from "./plans.js";
import { answer, changed, chosen, model, person, plans, refusal, values, view, visible, VIRTUAL, wish } from "./state.js";
import { language, t } from "./texts.js";
import { Key } from "./track.js";
import { shown, told } from "./values.js";
import { classes } from "./view.js";
import { refusedText } from "./words.js";

const HEIGHT = 84;
const SPARE = 6;

// -- which rows, in which order ---------------------------------------------------------------------------------

const rank = (name) => (changed.value.has(name) ? 0 : isLimited(wish.value, name) ? 1 : 2);

function ordered() {
  const all = model.value.features;
  const { sort } = view.value;
  if (sort === "name") return [...all].sort((one, two) => one.text.localeCompare(two.text));
  if (sort === "file") return all;
  return [...all].sort((one, two) => (one.locked ? 3 : rank(one.name)) - (two.locked ? 3 : rank(two.name)));
}

/** The order is made anew when things are calm and nobody is at work in the table, so that no row jumps away. */
function useOrder(body) {
  const [order, setOrder] = useState(ordered);
  const about = `${wish.value.person} ${view.value.sort} ${answer.value !== null}`;
  const last = useRef(about);
  calm.value;
  useLayoutEffect(() => {
    if (last.current !== about || !body.current?.contains(document.activeElement)) setOrder(ordered());
    last.current = about;
  }, [about, calm.value]);
  return order;
}

export function rowsShown(order) {
  const { show, search } = view.value;
  const sought = search.toLocaleLowerCase();
  return order.filter((feature) => {
    if (sought && !feature.text.toLocaleLowerCase().includes(sought) && !feature.name.toLocaleLowerCase().includes(sought)) return false;
    return show === "all" || rank(feature.name) < (show === "changed" ? 1 : 2);
  });
}

// -- a row -------------------------------------------------------------------------------------------------------

const nowText = (feature) => {
  const value = values.value?.[feature.name];
  return told(feature, wish.value.own ? shown(feature, value) : person.value?.texts?.[feature.name] ?? shown(feature, value), value ?? null);
};

export function Now({ feature }) {
  if (!values.value) return <span class="quiet">…</span>;
  const missing = (values.value[feature.name] ?? null) === null;
  return missing ? <i>{t("missing")}</i> : <span>{nowText(feature)}{feature.unit && <> <small>{feature.unit}</small></>}</span>;
}

export function Problem({ feature }) {
  const blamed = answer.value?.status === "contradictory" && answer.value.shortfall?.feature === feature.name;
  if (refusal.value?.feature === feature.name) return <p class="problem" role="alert">{refusedText(refusal.value)}</p>;
  const closed = answer.value?.closed?.find((one) => one.feature === feature.name);
  if (!closed && !blamed) return null;
  const reason = closed && !blamed ? closed.sentence : answer.value.shortfall.reason;
  return <p class="problem">{language.value === "en" ? reason : t("closed", { feature: feature.text })}</p>;
}

function Row({ feature, index }) {
  const held = feature.locked || wish.value.freeze.includes(feature.name);
  const touched = chosen.value?.changes.some((one) => one.feature === feature.name);
  return <tr class={classes(held && "locked", touched && "touched", !isOpen(feature) && "folded")} data-feature={feature.name} aria-rowindex={index + 2}>
    <th scope="row"><div class="feature"><Lock feature={feature} /><Name feature={feature} fixed={held || model.value.features.length > VIRTUAL} /></div>
      {!held && <div class="manner"><Way feature={feature} /><Effort feature={feature} /></div>}
      <OwnerMark feature={feature} /><Problem feature={feature} /></th>
    <td class="now-value"><Now feature={feature} /></td>
    <td class="control" {...opens(feature)}><Control feature={feature} now={values.value?.[feature.name] ?? null} /></td>
    {plans.value.map((plan) => <PlanCell key={plan.key} feature={feature} plan={plan} />)}
    <td class="by-hand"><Hand feature={feature} /></td>
  </tr>;
}

// -- the whole ---------------------------------------------------------------------------------------------------

export function Tools() {
  const set = (patch) => (view.value = { ...view.value, ...patch });
  const limited = model.value.features.filter((feature) => rank(feature.name) < 2).length;
  return <div class="tools" role="group" aria-label={t("tools")}>
    <label>{t("show")} <select value={view.value.show} onChange={(event) => set({ show: event.target.value })}>
      <option value="all">{t("show.all", { n: model.value.features.length })}</option><option value="limited">{t("show.limited", { n: limited })}</option><option value="changed">{t("show.changed", { n: changed.value.size })}</option></select></label>
    <label>{t("sort")} <select value={view.value.sort} onChange={(event) => set({ sort: event.target.value })}>
      {["changed", "file", "name"].map((name) => <option value={name}>{t(`sort.${name}`)}</option>)}</select></label>
    <label class="grow"><span class="hidden">{t("search.features")}</span><input type="search" placeholder={t("search.features")} value={view.value.search} onInput={(event) => set({ search: event.target.value })} /></label>
  </div>;
}

function useWindow(count, box) {
  const [top, setTop] = useState(0);
  const virtual = count > VIRTUAL;
  if (!virtual) return { first: 0, last: count, virtual, onScroll: undefined };
  const tall = box.current?.clientHeight || 800;
  const first = Math.min(count, Math.max(0, Math.floor(top / HEIGHT) - SPARE));
  const last = Math.min(count, first + Math.ceil(tall / HEIGHT) + 2 * SPARE);
  return { first, last, virtual, onScroll: (event) => setTop(event.currentTarget.scrollTop) };
}

/** Columns keep their widths whatever stands in them, so that nothing moves while plans change. */
const Columns = ({ count }) => <colgroup><col class="c-feature" /><col class="c-now" /><col class="c-control" />{Array.from({ length: count }, () => <col />)}<col class="c-hand" /></colgroup>;

const Space = ({ rows }) => rows > 0 && <tr class="space" aria-hidden="true"><td style={{ height: `${rows * HEIGHT}px` }}></td></tr>;

export function Table() {
  const box = useRef(null);
  const body = useRef(null);
  const rows = rowsShown(useOrder(body));
  const { first, last, virtual, onScroll } = useWindow(rows.length, box);
  const names = model.value.features.length > VIRTUAL ? rows.slice(first, last).map((feature) => feature.name) : null;
  useEffect(() => {
    visible.value = names;
  }, [names?.join("\n")]);
  const gone = ["gone", "ended"].includes(line.value.state);
  const foot = (name) => <th scope="row" colspan="3">{t(`foot.${name}`)}</th>;
  return <section class={classes("board", gone && "gone")} aria-label={t("board")}><Tools /><Key />
    <div class="scroll grid" ref={box} onScroll={onScroll} tabindex="0" role="region" aria-label={t("board.table")}>
    <table class={classes("plans", virtual && "virtual")} data-seq={answer.value?.seq} aria-rowcount={rows.length + 1} style={{ minWidth: `${42 + 8.5 * plans.value.length}rem` }}>
      <caption class="hidden">{t("board.caption")}</caption><Columns count={plans.value.length} />
      <thead><tr><th scope="col">{t("col.feature")}</th><th scope="col" class="now-value">{t("col.now")}</th><th scope="col" class="control">{t("col.become")}</th>
        {plans.value.map((plan) => <PlanHead key={plan.key} plan={plan} />)}
        <th scope="col" class="by-hand"><span class="plan-name">{t("col.hand")}</span><span class="sure">{t("plan.sure", { percent: handPercent() })}</span><span class="quiet">{t("plan.changes", { n: handCount() })}</span></th></tr></thead>
      <tbody ref={body}><Space rows={first} />
        {rows.slice(first, last).map((feature, i) => <Row key={feature.name} feature={feature} index={first + i} />)}
        <Space rows={rows.length - last} />
        {!rows.length && <tr><td colspan={plans.value.length + 4} class="quiet">{t("search.none", { search: view.value.search })}</td></tr>}</tbody>
      <tfoot>{feet().map(([name, say]) => <tr key={name}>{foot(name)}{plans.value.map((plan) => <td key={plan.key} class={classes("plan", plan.key === chosen.value?.key && "chosen", plan.stale && "stale")}>{plan.stale ? "…" : say(plan)}</td>)}
          <td class="by-hand">–</td></tr>)}
        <tr class="acts">{foot("actions")}{plans.value.map((plan) => <td key={plan.key} class={classes("plan", plan.key === chosen.value?.key && "chosen")}><Actions plan={plan} /></td>)}<td class="by-hand"><HandActions /></td></tr></tfoot>
    </table></div></section>;
}
