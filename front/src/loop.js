// The two speeds: fast on every event (plans, by hand), and settled once nothing moved for a while.
import { batch, computed, effect, untracked } from "@preact/signals";
import { NoAnswer, Refusal, ask, idle, line, once } from "./ask.js";
import { calm, forget, later, moving } from "./history.js";
import { EFFORT } from "./limits.js";
import { answer, relaxations, model, person, plans, question, refusal, score, settled, values, visible, VIRTUAL, wanted, wish } from "./state.js";

/** What can be relaxed: too few plans, or none. */
const LACKING = ["not_found", "infeasible", "contradictory", "short"];

/** Plans keep their columns: what was shown stays where it was, new ones fill the gaps; the easiest first on request. */
function inPlace(found, before, easy) {
  if (easy) return [...found].sort((one, two) => (one.cost ?? 0) - (two.cost ?? 0));
  const kept = new Map(found.map((plan) => [plan.key, plan]));
  const columns = before.slice(0, found.length).map((plan) => {
    const same = kept.get(plan.key);
    kept.delete(plan.key);
    return same ?? null;
  });
  const fresh = [...kept.values()];
  const filled = columns.map((plan) => plan ?? fresh.shift());
  return [...filled, ...fresh].filter(Boolean);
}

function answered(found, body) {
  const before = answer.value;
  const same = before && before.body.person === body.person && before.body.target === body.target;
  const easy = Object.keys(body.constraints.cost ?? {}).length > 0 && Object.values(body.constraints.cost).some((cost) => cost !== EFFORT.medium);
  batch(() => {
    answer.value = { ...found, body, plans: inPlace(found.plans, same ? before.plans : [], easy) };
    refusal.value = null;
    if (!LACKING.includes(found.status)) relaxations.value = null;
  });
}

function refused(error) {
  if (error instanceof Refusal && error.status < 500) refusal.value = { text: error.message, feature: error.feature };
}

async function fetchPerson(id) {
  try {
    const found = await once("person", { person: id });
    if (wish.value.person === id) person.value = found;
  } catch (error) {
    if (error instanceof Refusal) refusal.value = { text: error.message, feature: null };
    else retryPerson(id);
  }
}

function retryPerson(id) {
  line.value = { state: "gone", error: new NoAnswer() };
  setTimeout(() => wish.value.person === id && person.value?.id !== id && fetchPerson(id), 1000);
}

/** The row by hand as text: it is scored again when the text changes. */
const scoring = computed(() => {
  if (!values.value || !model.value) return null;
  return JSON.stringify({ values: { ...values.value, ...wish.value.hand }, target: wanted(), strips: true, ...(model.value.features.length > VIRTUAL && { features: visible.value ?? [] }) });
});

// -- settled ---------------------------------------------------------------------------------------------------

const SEARCH = 60000;
let leaving = null;

async function settle(text) {
  leaving?.abort();
  leaving = new AbortController();
  const { signal: ended } = leaving;
  const body = JSON.parse(text);
  const options = { ended, timeout: 20000 };
  const shown = untracked(() => plans.value);
  try {
    // A quick look that found nothing proves nothing: look thoroughly before anything else is said.
    if (answer.value.status === "not_found" && !answer.value.search) {
      const found = await once("search", { ...body, seq: 0 }, { ended, timeout: SEARCH });
      if (question.value === text) answered({ ...found, search: found.search ?? {} }, body);
      return;
    }
    const found = await once("settle", { ...body, seq: 0, keys: shown.map((plan) => plan.key) }, options);
    if (question.value === text) settled.value = { ...found, text };
    if (LACKING.includes(answer.value?.status)) {
      const looser = await once("relax", { ...body, seq: 0 }, options);
      if (question.value === text) relaxations.value = { ...looser, text };
    }
  } catch (error) {
    if (!ended.aborted && !(error instanceof Refusal) && !(error instanceof NoAnswer)) console.warn(error);
  }
}

/** How far the newest question is: "moving", "asked", "checking" or "settled". */
export const stage = computed(() => {
  const [text, found] = [question.value, answer.value];
  if (moving.value) return "moving";
  if (!text || !found || JSON.stringify(found.body) !== text || !idle.value) return "asked";
  if (found.status === "already") return "settled";
  const looser = found.status === "found" || relaxations.value?.text === text;
  return settled.value?.text === text && looser ? "settled" : "checking";
});

// Settled means that the newest answer is there as well as that nothing moves.
function settleWhenAnswered(text) {
  const current = answer.value;
  if (!text || !current || JSON.stringify(current.body) !== text || current.status === "already") return;
  if (settled.value?.text !== text) settle(text);
}

/** Start asking. */
export function run() {
  effect(() => {
    const id = wish.value.own ? null : wish.value.person;
    untracked(() => {
      if (person.value?.id === id) return;
      person.value = null;
      forget();
      if (id !== null) fetchPerson(id);
    });
  });
  effect(() => {
    const text = question.value;
    untracked(() => {
      leaving?.abort();
      if (text) ask("ask", JSON.parse(text), answered, { refused });
      else forget();
    });
  });
  effect(() => {
    const text = scoring.value;
    if (text) untracked(() => ask("score", JSON.parse(text), (found) => (score.value = found), { refused }));
  });
  effect(() => {
    calm.value;
    answer.value;
    if (!idle.value) return; // what is quick goes first
    if (!moving.value) untracked(() => settleWhenAnswered(question.value));
  });
  later();
}
