// The line that says how many plans fit, what stands in the way, and what would help.
import { effect, signal } from "@preact/signals";
import { again, line, waiting } from "./ask.js";
import { calm, change, moving } from "./history.js";
import { wishOf } from "./limits.js";
import { stage } from "./loop.js";
import { answer, banner, chosen, drawer, loosenings, question, refusal, resultText, target, wish } from "./state.js";
import { numeral, t } from "./texts.js";
import { announced, limitText, looserText } from "./words.js";

const AT_MOST_EVERY = 1000;

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
const hundred = (share) => (share >= 1 ? 100 : share > 0.99 ? 99 : Math.round(share * 100));

/** The limit that rules out most, where it rules out much. */
function tightest() {
  const worst = [...(answer.value?.pressure ?? [])].sort((one, two) => two.share - one.share)[0];
  return worst?.share >= 0.05 ? worst : null;
}

function Tightest() {
  const worst = tightest();
  return worst && <span class="tightest">{t("status.tightest", { limit: limitText(worst), n: hundred(worst.share) })}</span>;
}

const offers = () => (loosenings.value?.text === question.value ? loosenings.value.loosenings : []) ?? [];

function Loosenings() {
  const found = offers();
  if (!found.length) return null;
  return <ul class="loosenings">{found.map((one) => <li key={one.id + one.sentence}><button type="button" class="offer" onClick={() => change(wishOf(one.asking, wish.value))}>
    <span>{looserText(one)}</span> <b>{t("loosen.found", { n: one.found })}</b></button></li>)}</ul>;
}

/** What the answer says, as one line. */
function Line() {
  const found = answer.value;
  if (refusal.value) return <p class="line problem">{refusal.value.text}</p>;
  if (!found) return <p class="line quiet">{t("status.first")}</p>;
  const result = resultText(target.value);
  if (found.status === "already") return <p class="line">{t("status.already", { result, percent: numeral(found.now.percent) })}</p>;
  if (found.status === "impossible") return <p class="line problem">{t("status.impossible", { reason: (found.shortfall?.reason ?? "").replace(/\.$/, "") })}</p>;
  if (found.status === "none") return <p class="line problem">{t("status.none")} {found.shortfall && <span class="quiet">{sentence(found.shortfall.reason)}</span>} {offers().length > 0 && t("status.any")}</p>;
  if (found.status === "short") return <p class="line">{t("status.short", { n: found.plans.length, asked: found.asked })} {tightest() ? <Tightest /> : found.shortfall && <span class="quiet">{sentence(found.shortfall.reason)}</span>}</p>;
  return <p class="line"><strong>{t("status.found", { n: found.found })}</strong> <Tightest /></p>;
}

function Network() {
  const { state, error } = line.value;
  const copy = () => navigator.clipboard?.writeText(JSON.stringify(error?.problem ?? String(error)));
  if (state === "gone") return <p class="line gone">{t("line.gone")} <button type="button" class="quiet" onClick={again}>{t("line.retry")}</button></p>;
  if (state === "broken") return <p class="line gone">{t("line.broken")} <button type="button" class="quiet" onClick={copy}>{t("line.copy")}</button></p>;
  return waiting.value === "slow" && <p class="line quiet">{t("line.slow")}</p>;
}

export function Status() {
  const certified = answer.value?.certified;
  return <section class="status" aria-label={t("status")} data-found={answer.value?.found} data-status={answer.value?.status} data-stage={stage.value}>
    <span class={waiting.value ? "progress on" : "progress"} aria-hidden="true"></span>
    <Network /><Line />
    {(answer.value?.pressure.length ?? 0) > 0 && <button type="button" class="link" aria-expanded={drawer.value === "costs"} onClick={() => (drawer.value = drawer.value === "costs" ? null : "costs")}>{t("costs.open")}</button>}
    <Loosenings />
    {certified && answer.value.plans.length > 0 && <p class="quiet certified">{t("certified", { percent: numeral(certified.percent) })}</p>}
  </section>;
}

export function Banner() {
  const { unread, other } = banner.value;
  if (!unread.length && !other) return null;
  return <div class="banner" role="alert">{other && <p>{t("banner.other")}</p>}
    {unread.length > 0 && <p>{t("banner.unread", { parts: unread.map((part) => `‘${part}’`).join(", ") })}</p>}
    <button type="button" class="quiet" onClick={() => (banner.value = { unread: [], other: false })}>{t("close")}</button></div>;
}

// -- for those who don't see it ----------------------------------------------------------------------------------

const spoken = signal("");
let last = 0;
let timer = null;

function speak() {
  timer = null;
  if (moving.value || !answer.value) return;
  const text = line.value.state === "gone" ? t("line.gone") : announced(answer.value, chosen.value);
  if (text === spoken.value) return;
  last = performance.now();
  spoken.value = text;
}

/** One sentence, once settled, at most once a second. */
export function announce() {
  effect(() => {
    calm.value;
    answer.value;
    line.value;
    chosen.value;
    timer ??= setTimeout(speak, Math.max(50, AT_MOST_EVERY - (performance.now() - last)));
  });
}

export const Live = () => <div class="hidden" role="status" aria-live="polite" id="live">{spoken.value}</div>;
