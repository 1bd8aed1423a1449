// The trade-off: how sure it can get with so many changes.
import { change } from "./history.js";
import { answer, question, settled, wish } from "./state.js";
import { numeral, t } from "./texts.js";
import { classes } from "./view.js";

const [WIDE, TALL, PAD] = [480, 180, 28];

export function Curve() {
  const found = settled.value?.text === question.value ? settled.value.curve ?? [] : null;
  if (!found) return <p class="quiet">{t("wait")}</p>;
  const some = found.filter((one) => one.found > 0);
  if (!some.length) return <p class="quiet">{t("curve.none")}</p>;
  const last = Math.max(2, ...found.map((one) => one.changes));
  const x = (one) => PAD + ((one.changes - 1) / (last - 1)) * (WIDE - 2 * PAD);
  const y = (share) => TALL - PAD - share * (TALL - 2 * PAD);
  const needed = answer.value?.needed ?? 0.5;
  return <><p class="quiet">{t("curve.about")}</p><div class="curve">
    <svg viewBox={`0 0 ${WIDE} ${TALL}`} role="img" aria-label={t("curve.name")}>
      <line class="axis" x1={PAD} x2={WIDE - PAD} y1={y(0)} y2={y(0)} /><line class="needed" x1={PAD} x2={WIDE - PAD} y1={y(needed)} y2={y(needed)} />
      <text class="over" x={WIDE - PAD} y={y(needed) + 15}>{t("meter.needed", { percent: numeral(answer.value.needed_percent) })}</text>
      <polyline class="path" points={some.map((one) => `${x(one)},${y(one.probability)}`).join(" ")} />
      {some.map((one) => <g key={one.changes}><circle class={classes("point", one.changes === wish.value.most && "held")} cx={x(one)} cy={y(one.probability)} r="5" /><text class="under" x={x(one)} y={TALL - 8}>{one.changes}</text></g>)}
    </svg>
    <ol class="points">{some.map((one) => <li key={one.changes}><button type="button" class={classes("offer", one.changes === wish.value.most && "held")} aria-pressed={one.changes === wish.value.most} onClick={() => change({ most: one.changes })}>
      <span>{t("plan.changes", { n: one.changes })}</span> <b>{t("curve.best", { percent: numeral(one.percent) })}</b></button></li>)}</ol></div></>;
}
