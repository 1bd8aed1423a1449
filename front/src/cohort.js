// Many people: under these limits, how many have a way, by group, and who has none.
import { signal } from "@preact/signals";
import { stream } from "./ask.js";
import { askingOf } from "./limits.js";
import { model, question, wish } from "./state.js";
import { go } from "./picker.js";
import { number, percent, t } from "./texts.js";
import { Bar } from "./plans.js";

const found = signal(null);
const group = signal("");
let running = null;

const questionOf = () => {
  const { person: _, values: __, pinned, refused, ...rest } = askingOf({ ...wish.value, pin: {}, not: [] }, model.value);
  return rest;
};

async function start() {
  running?.abort();
  const own = (running = new AbortController());
  found.value = { done: 0, total: 0, groups: [], without: [], running: true, question: question.value };
  try {
    for await (const part of stream("cohort", { ...questionOf(), people: null, groups: group.value || null }, own.signal)) {
      if (running !== own) return;
      found.value = { ...found.value, ...part, without: part.without ?? found.value.without, running: !part.end };
    }
  } catch (error) {
    if (running === own && !own.signal.aborted) found.value = { ...found.value, error: error.message };
  }
  if (running === own) found.value = { ...found.value, running: false };
}

const stop = () => running?.abort();

const share = (some, all) => (all ? some / all : 0);

function Groups({ groups }) {
  if (!groups?.length) return null;
  return <table class="costs"><thead><tr><th scope="col">{t("cohort.group")}</th><th scope="col">{t("cohort.people")}</th><th scope="col">{t("cohort.way")}</th></tr></thead>
    <tbody>{groups.map((one) => <tr key={String(one.group)}><th scope="row">{one.group === null ? t("missing") : String(one.group)}</th><td>{number(one.people)}</td><td><Bar share={share(one.with_way, one.people)} /> {percent(share(one.with_way, one.people))}</td></tr>)}</tbody></table>;
}

function Without({ without }) {
  if (!without?.length) return null;
  return <details class="without"><summary>{t("cohort.without", { n: without.length })}</summary><ul class="plain">{without.map((one) => <li key={one.id}><button type="button" class="link" onClick={() => go(one.id)}>{one.label}</button> <span class="quiet">{one.reason}</span></li>)}</ul></details>;
}

export function Cohort() {
  const result = found.value;
  const levels = model.value.features.filter((feature) => feature.kind !== "number");
  return <><p class="quiet">{t("cohort.about", { n: Math.min(1000, model.value.people.count) })}</p>
    <div class="row"><label>{t("cohort.by")} <select value={group.value} onChange={(event) => (group.value = event.target.value)}><option value="">{t("cohort.nobody")}</option>{levels.map((feature) => <option value={feature.name}>{feature.text}</option>)}</select></label>
      {result?.running ? <button type="button" class="quiet" onClick={stop}>{t("cohort.stop")}</button> : <button type="button" class="main" onClick={start}>{t("cohort.start")}</button>}</div>
    {result && <div aria-busy={result.running}>{result.running && <progress max={result.total || 1} value={result.done} aria-label={t("cohort.progress")}></progress>}
      {result.error && <p class="problem">{result.error}</p>}
      {result.done > 0 && <p><strong>{t("cohort.found", { some: result.with_way, n: result.done })}</strong> {result.question !== question.value && <span class="quiet">{t("cohort.older")}</span>}</p>}
      <Groups groups={result.groups} /><Without without={result.without} /></div>}</>;
}
