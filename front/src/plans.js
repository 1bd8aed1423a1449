// A plan: its heading, its cells, its feet, and what can be done with it.
import { change } from "./history.js";
import { lock, refuse } from "./limits.js";
import * as icons from "./icons.js";
import { answer, chosen, dialog, features, inSight, plans, saved, settled, values, wish } from "./state.js";
import { isSaved, toggleSaved } from "./saved.js";
import { list, number, numeral, t } from "./texts.js";
import { told } from "./values.js";
import { classes } from "./view.js";
import { usual } from "./words.js";

const SIGNS = { up: "▲", down: "▼", other: "●" };

export function choose(plan) {
  inSight.value = plan.digest;
  change({ plan: plan.digest });
}
/** The plan before or after the chosen one. */
export function chooseNext(by) {
  const fresh = plans.value.filter((plan) => !plan.stale);
  const at = fresh.findIndex((plan) => plan.key === chosen.value?.key);
  if (fresh.length) choose(fresh[(at + by + fresh.length) % fresh.length]);
}
export const tryByHand = (plan) => change({ hand: Object.fromEntries(plan.changes.map((one) => [one.feature, one.after])), pin: {} });
export const openReceipt = (list) => (dialog.value = { name: "receipt", plans: list });

export function Star({ plan }) {
  const held = isSaved(plan, saved.value);
  return <button type="button" class="icon-button star" aria-pressed={held} aria-label={t("save.name", { letter: plan.letter })}
    title={held ? t("save.drop") : t("save")} onClick={() => toggleSaved(plan)}>{icons.star(held)}</button>;
}

/** What was pressed with a key goes away with its plan: the focus goes to the row that it stood in, or to the plans. */
function stay({ detail, currentTarget }) {
  if (detail) return;
  const row = currentTarget.closest("tr[data-feature]");
  (row?.querySelector("button.lock") ?? currentTarget.closest("[tabindex]"))?.focus();
}

/** What a plan changes, or which one before it changes the same, with other values. */
export const ways = (plan) => (plan.like ? t("plan.like", { letter: plan.like }) : t("plan.way", { n: plan.changes.length, names: list(plan.changes.map((one) => features.value.get(one.feature)?.text ?? one.feature)) }));

/** The head of a plan's column. */
export function PlanHead({ plan }) {
  const held = plan.key === chosen.value?.key;
  return <th scope="col" class={classes("plan", held && "chosen", plan.stale && "stale", plan.like && "like")} data-key={plan.key}>
    <span class="plan-name"><button type="button" class="choose" aria-pressed={held} onClick={() => choose(plan)}>{t("plan.name", { letter: plan.letter })}</button><Star plan={plan} /></span>
    <span class="sure">{plan.stale ? "…" : t("plan.sure", { percent: numeral(plan.percent) })}</span>
    <span class="quiet ways">{plan.stale ? "" : ways(plan)}</span>
  </th>;
}

/** The change of a feature: sign and new value; the old one stands in the column "now". */
export function Change({ feature, one, plan }) {
  const after = told(feature, one.after_text, one.after);
  const before = told(feature, one.before_text, one.before);
  const text = t("change.title", { feature: feature.text, before, after });
  return <><span class={classes("change", one.direction, one.then && "then")} title={one.then ? `${text} ${t("change.then")}` : text}>
      <b aria-hidden="true">{SIGNS[one.direction]}{"\u00a0"}</b><span class="hidden">{t(`change.${one.direction}`)} </span>
      {one.after === null ? <i>{after}</i> : <strong>{after.split("/").flatMap((part, i) => (i ? ["/", <wbr />, part] : part))}</strong>}</span>
    <button type="button" class="not-this" aria-label={t("not.name", { feature: feature.text, value: after, letter: plan.letter })}
      onClick={(event) => (change(refuse(wish.value, feature.name, one.after)), stay(event))}>{t("not")}</button></>;
}

export function PlanCell({ feature, plan }) {
  const one = !plan.stale && plan.changes.find((found) => found.feature === feature.name);
  return <td class={classes("plan", plan.key === chosen.value?.key && "chosen", plan.stale && "stale", one && "changes", plan.like && "like")}>
    {one ? <Change feature={feature} one={one} plan={plan} /> : <span class="same"><span aria-hidden="true">{plan.stale ? "…" : "·"}</span><span class="hidden">{plan.stale ? t("stale") : t("same")}</span></span>}
  </td>;
}

/** Whether the plan was checked against every limit, in words. */
export function Verdict({ plan }) {
  const found = settled.value?.verdicts?.[plan.key];
  if (!found || plan.stale) return <span class="quiet">…</span>;
  const failed = found.checks.filter((check) => !check.holds);
  const [yours, owners] = ["caller", "owner"].map((whose) => found.checks.filter((check) => check.whose === whose).length);
  const said = [yours && t("verdict.yours", { n: yours }), owners && t("verdict.owners", { n: owners })].filter(Boolean);
  if (found.holds) return <span class="kept">✓ {said.length ? said.join(", ") : t("verdict.none")}</span>;
  return <span class="broken">✗ {failed.map((check) => check.constraint).join(", ")}</span>;
}

export function Bar({ share }) {
  return <span class="gauge" aria-hidden="true"><span style={{ width: `${Math.round(share * 100)}%` }}></span></span>;
}

export const FEET = [
  ["usual", (plan) => usual(plan)],
  ["effort", (plan) => (plan.cost === null || plan.cost === undefined ? "–" : number(plan.cost))],
  ["keeps", (plan) => <Verdict plan={plan} />],
];
export const feet = () => FEET.filter(([name]) => name !== "effort" || Object.keys(answer.value?.body.constraints.cost ?? {}).length);

/** What can be done with a plan. */
export function Actions({ plan, receipt = false }) {
  return <div class="actions">
    <button type="button" class="quiet" onClick={() => tryByHand(plan)} aria-label={t("try.name", { letter: plan.letter })}>{t("try")}</button>
    {receipt && <button type="button" class="quiet" onClick={() => openReceipt([plan])} aria-label={t("receipt.name", { letter: plan.letter })}>{t("receipt")}</button>}
  </div>;
}

/** Plans that change the same as one card, on narrow screens; one of them is shown. */
export function PlanCard({ group }) {
  const now = values.value;
  const plan = group.find((one) => one.key === chosen.value?.key) ?? group[0];
  const Heading = ({ one }) => <button type="button" class="choose" aria-pressed={one.key === chosen.value?.key} onClick={() => choose(one)}>{t("plan.name", { letter: one.letter })}</button>;
  return <li class={classes("card", plan.stale && "stale", plan.key === chosen.value?.key && "chosen")} data-key={plan.key} data-digest={plan.digest} id={`plan-${group[0].letter}`}>
    <h2>{group.map((one) => <Heading key={one.key} one={one} />)} <span class="sure">{t("plan.sure", { percent: numeral(plan.percent) })}</span><Star plan={plan} /></h2>
    {group.length > 1 && <p class="quiet same-set">{t("plan.same", { n: group.length })}</p>}
    {plan.stale ? <p class="quiet">{t("stale")}</p> : <><ul class="changes">{plan.changes.map((one) => {
      const feature = features.value.get(one.feature);
      return <li key={one.feature} data-feature={one.feature}><span class="feature">{feature.text}</span>
        <span class="from">{told(feature, one.before_text, now?.[one.feature])} →</span> <Change feature={feature} one={one} plan={plan} />
        <button type="button" class="not-this" onClick={(event) => (change(lock(wish.value, one.feature)), stay(event))}>{t("cant")}</button></li>;
    })}</ul>
    <dl>{feet().map(([name, say]) => <div><dt>{t(`foot.${name}`)}</dt><dd>{say(plan)}</dd></div>)}</dl></>}
    <Actions plan={plan} receipt />
  </li>;
}
