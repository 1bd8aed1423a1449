// What lies behind a control: everyone in the data, the decision along it, where plans landed, and the value now.
import { resultText, target } from "./state.js";
import { t } from "./texts.js";

const WIDTH = 200;
const TALL = 22;

/** Everyone in the data, as one path of bars. */
export function histogram(feature, scale) {
  const { edges, counts } = feature.marginal ?? {};
  if (!edges) return "";
  const most = Math.max(...counts, 1);
  return counts.map((count, i) => {
    const [from, to] = [scale.share(edges[i]) * WIDTH, scale.share(edges[i + 1]) * WIDTH];
    const height = count ? Math.max(1, Math.sqrt(count / most) * TALL) : 0;
    return `M${from.toFixed(1)} ${TALL}v${(-height).toFixed(1)}h${Math.max(0.6, to - from - 0.6).toFixed(1)}v${height.toFixed(1)}z`;
  }).join("");
}

/** Stretches of the track on which the answer would be yes, as one path. */
export function accepted(strip, scale, needed) {
  const at = strip.map((one) => scale.share(one.value) * WIDTH);
  return strip.map((one, i) => {
    if (one.probability < needed) return "";
    const from = i ? (at[i - 1] + at[i]) / 2 : at[i];
    const to = i < at.length - 1 ? (at[i] + at[i + 1]) / 2 : at[i];
    return `M${from.toFixed(1)} 0h${Math.max(1, to - from).toFixed(1)}v4h${-Math.max(1, to - from).toFixed(1)}z`;
  }).join("");
}

const ticks = (values, scale) => values.map((value) => `M${(scale.share(value) * WIDTH).toFixed(1)} 0v6`).join("");

/** What the signs behind a track mean. */
export const Key = () => <p class="key">{["everyone", "landed", "yes", "now"].map((name) => <span key={name}><b class={`sign sign-${name}`} aria-hidden="true"></b> {t(`track.${name}`, { result: resultText(target.value) })}</span>)}</p>;

/** The picture behind a track; it repeats what the words say, and is hidden from screen readers. */
export function Track({ feature, scale, now, low, high, strip, needed, reach, pinned }) {
  const x = (value) => scale.share(value) * WIDTH;
  const [from, to] = [low === null ? 0 : x(low), high === null ? WIDTH : x(high)];
  const landed = (reach?.values ?? []).filter((value) => value !== null);
  return <svg class="track" viewBox={`0 0 ${WIDTH} 36`} preserveAspectRatio="none" aria-hidden="true">
    <title>{t("track.title")}</title>
    <path class="bars" d={histogram(feature, scale)} />
    {landed.length > 0 && <rect class="reach" x={x(reach.low ?? Math.min(...landed))} y="0" width={Math.max(1.5, x(reach.high ?? Math.max(...landed)) - x(reach.low ?? Math.min(...landed)))} height={TALL} />}
    <g transform="translate(0 30)"><rect class="strip" width={WIDTH} height="4" />{strip && <path class="yes" d={accepted(strip, scale, needed)} />}</g>
    <rect class="line" x="0" y="24" width={WIDTH} height="3" /><rect class="allowed" x={from} y="24" width={Math.max(0, to - from)} height="3" />
    <path class="landed" transform="translate(0 16)" d={ticks(landed, scale)} />
    {now !== null && now !== undefined && <path class="now" d={`M${x(now)} 0v24`} />}
    {pinned !== undefined && pinned !== null && <path class="pinned" d={`M${x(pinned)} 0v24`} />}
  </svg>;
}
