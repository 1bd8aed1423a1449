// The line that says how many plans fit, what stands in the way, and what would help.
import { effect, signal } from "@preact/signals";
import { again, line, waiting } from "./ask.js";
import { calm, change, moving } from "./history.js";
import { wishOf } from "./limits.js";
import { stage } from "./loop.js";
import { answer, banner, chosen, drawer, features, relaxations, question, refusal, resultText, target, wish } from "./state.js";
import { language, numeral, t } from "./texts.js";
import { announced, limitText, looserText, refusedText } from "./words.js";

const AT_MOST_EVERY = 1000;

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

const offers = () => (relaxations.value?.text === question.value ? relaxations.value.relaxations : []) ?? [];

function Relaxations() {
  const found = offers();
  if (!found.length) return null;
  return <ul class="relaxations">{found.map((one) => <li key={one.id + one.sentence}><button type="button" class="offer" onClick={() => change(wishOf(one.asking, wish.value))}>
    <span>{looserText(one)}</span> <b>{t("relax.found", { n: one.found })}</b></button></li>)}</ul>;
}

/** Limits that exclude each other: the engine's reason where it speaks the page's language, and else whose they are. */
function contradiction({ shortfall }) {
  const feature = features.value.get(shortfall?.feature)?.text;
  if (language.value === "en" && shortfall) return t("status.contradictory.why", { reason: shortfall.reason.replace(/\.$/, "") });
  return feature ? t("status.contradictory.at", { feature }) : t("status.contradictory");
}

/** Nothing found: what that proves, and what it doesn't. */
export function nothing({ status, search }, result) {
  const n = search?.looked_at ?? 0;
  if (status === "infeasible") return t(n ? "status.infeasible" : "status.infeasible.none", { n, result });
  if (!search) return t("status.looking");
  if (search.all && search.accepted) return t("status.unusual", { n, some: search.accepted, result });
  return t(n ? "status.open.of" : "status.open", { n });
}

/** What the answer says, as one line. */
function Line() {
  const found = answer.value;
  if (refusal.value) return <p class="line problem">{refusedText(refusal.value)}</p>;
  if (!found) return <p class="line quiet">{t("status.first")}</p>;
  const result = resultText(target.value);
  if (found.status === "already") return <p class="line">{t("status.already", { result, percent: numeral(found.now.percent) })}</p>;
  if (found.status === "contradictory") return <p class="line problem">{contradiction(found)} {offers().length > 0 && t("status.any")}</p>;
  if (found.status === "infeasible" || found.status === "not_found") return <p class="line problem">{nothing(found, result)} <Tightest /> {offers().length > 0 && t("status.any")}</p>;
  if (found.status === "short") return <p class="line">{t("status.short", { n: found.plans.length, asked: found.asked })} <Tightest /></p>;
  return <p class="line"><strong>{t("status.found", { n: found.found })}</strong> <Tightest /></p>;
}

function Network() {
  const { state, error } = line.value;
  const copy = () => navigator.clipboard?.writeText(JSON.stringify(error?.problem ?? String(error)));
  if (state === "ended") return <p class="line gone" role="alert">{t("line.ended")}</p>;
  if (state === "gone") return <p class="line gone">{t(answer.value ? "line.gone" : "line.nothing")} <button type="button" class="quiet" onClick={again}>{t("line.retry")}</button></p>;
  if (state === "broken") return <p class="line gone">{t("line.broken")} <button type="button" class="quiet" onClick={copy}>{t("line.copy")}</button></p>;
  return waiting.value === "slow" && <p class="line quiet">{t("line.slow")}</p>;
}

export function Status() {
  const certified = answer.value?.certified;
  return <section class="status" aria-label={t("status")} data-found={answer.value?.found} data-status={answer.value?.status} data-stage={stage.value}>
    <span class={waiting.value ? "progress on" : "progress"} aria-hidden="true"></span>
    <Network /><Line />
    {(answer.value?.pressure.length ?? 0) > 0 && <button type="button" class="link" aria-expanded={drawer.value === "costs"} onClick={() => (drawer.value = drawer.value === "costs" ? null : "costs")}>{t("costs.open")}</button>}
    <Relaxations />
    {certified && answer.value.plans.length > 0 && <p class={certified.weak ? "problem certified" : "quiet certified"}>{t(certified.weak ? "certified.weak" : "certified", { percent: numeral(certified.percent) })}</p>}
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
  const text = line.value.state === "ended" ? t("line.ended") : line.value.state === "gone" ? t(answer.value ? "line.gone" : "line.nothing") : announced(answer.value, chosen.value, answer.value.status === "contradictory" ? contradiction(answer.value) : answer.value.status === "already" ? "" : nothing(answer.value, resultText(target.value)));
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
