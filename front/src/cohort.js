// Many people: under these limits, how many have a way, by group, and who has none.
import { signal } from "@preact/signals";
import { stream } from "./ask.js";
import { askingOf } from "./limits.js";
import { model, question, wish } from "./state.js";
import { go } from "./picker.js";
import { number, percent, t } from "./texts.js";
import { Bar } from "./plans.js";
import { download } from "./receipt.js";

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

/** Fewer people than this have no percentage, which one of them more would turn over. */
const FEW = 5;

/** Wilson's interval at 95 %: between which shares the true one lies. */
function interval(some, all) {
  const [z, p] = [1.96, some / all];
  const middle = (p + (z * z) / (2 * all)) / (1 + (z * z) / all);
  const half = (z * Math.sqrt((p * (1 - p)) / all + (z * z) / (4 * all * all))) / (1 + (z * z) / all);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

function Share({ some, all }) {
  if (all < FEW) return <span>{t("cohort.few", { some, n: all })}</span>;
  const [low, high] = interval(some, all);
  return <><Bar share={share(some, all)} /> {percent(share(some, all))} <span class="quiet">{t("cohort.between", { low: percent(low), high: percent(high) })}</span></>;
}

const nameOf = (one) => (one.group === null ? t("missing") : String(one.group));

function Groups({ groups }) {
  if (!groups?.length) return null;
  return <table class="costs"><thead><tr><th scope="col">{t("cohort.group")}</th><th scope="col">{t("cohort.people")}</th><th scope="col">{t("cohort.way")}</th><th scope="col">{t("cohort.burden")}</th></tr></thead>
    <tbody>{groups.map((one) => <tr key={nameOf(one)}><th scope="row">{nameOf(one)}</th><td data-name={t("cohort.people")}>{number(one.people)}</td><td><Share some={one.with_way} all={one.people} /></td>
      <td data-name={t("cohort.burden")}>{one.changes === null || one.with_way < FEW ? "–" : number(one.changes, { maximumFractionDigits: 1 })}</td></tr>)}</tbody></table>;
}

const quoted = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));

/** The groups, and who has no plan, as a file. */
function save({ groups, without, with_way: some, done }) {
  const all = groups.length ? groups : [{ group: "", people: done, with_way: some, changes: null }];
  const ends = (one) => (one.people < FEW ? ["", "", ""] : [share(one.with_way, one.people), ...interval(one.with_way, one.people)].map((found) => found.toFixed(4)));
  const rows = [["group", "people", "with_plan", "share", "low", "high", "mean_changes"], ...all.map((one) => [nameOf(one), one.people, one.with_way, ...ends(one), one.changes]),
    [], ["without_plan", "proved"], ...without.map((one) => [one.id, one.proved])];
  download("many-people.csv", "text/csv", rows.map((row) => row.map(quoted).join(",")).join("\n"));
}

function Without({ without }) {
  if (!without?.length) return null;
  return <details class="without"><summary>{t("cohort.without", { n: without.length })}</summary><ul class="plain">{without.map((one) => <li key={one.id}><button type="button" class="link" onClick={() => go(one.id)}>{one.label}</button> <span class="quiet">{t(one.proved ? "cohort.proved" : "cohort.open")}</span></li>)}</ul></details>;
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
      <Groups groups={result.groups} /><Without without={result.without} />
      {!result.running && result.done > 0 && <button type="button" class="quiet" onClick={() => save(result)}>{t("cohort.save")}</button>}</div>}</>;
}
