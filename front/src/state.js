// What the page knows: the model, the person, what is asked and what was answered.
import { computed, signal } from "@preact/signals";
import { START, askingOf, keeps } from "./limits.js";
import { digest } from "./link.js";

export const model = signal(null);
export const wish = signal({ ...START });
/** The person as the server knows them: id, values, texts, result, probabilities. */
export const person = signal(null);
/** The newest answer, with the asking that it answers; plans keep their columns from answer to answer. */
export const answer = signal(null);
/** What holds for the answer once nothing moved for a while: verdicts, leave-one-out, trade-off. */
export const settled = signal(null);
export const relaxations = signal(null);
/** By hand: result, percent and the decision along every feature. */
export const score = signal(null);
/** What the engine refused: its sentence and the feature it is about. */
export const refusal = signal(null);
/** Parts of the link that could not be read, and whether it was made with another model. */
export const banner = signal({ unread: [], other: false });

// -- the page itself -------------------------------------------------------------------------------------------

export const drawer = signal(null);
export const dialog = signal(null);
export const notice = signal("");
export const view = signal({ show: "all", sort: "changed", search: "", more: false });
export const saved = signal([]);
/** A table of more rows than this shows only those in sight. */
export const VIRTUAL = 60;
/** Features whose decision is drawn: null is all; of a wide table only the rows in sight. */
export const visible = signal(null);
const narrowQuery = matchMedia("(max-width: 699.9px)");
export const narrow = signal(narrowQuery.matches);
narrowQuery.addEventListener("change", () => (narrow.value = narrowQuery.matches));

// -- what follows from it --------------------------------------------------------------------------------------

export const features = computed(() => new Map((model.value?.features ?? []).map((one) => [one.name, one])));
/** Values now: the person's, or those entered. */
export const values = computed(() => wish.value.own ?? person.value?.values ?? null);
/** The question as text: it is asked again when the text changes. */
export const question = computed(() => {
  const { person: id, own } = wish.value;
  return model.value && (id !== null || own) ? JSON.stringify(askingOf(wish.value, model.value)) : null;
});
/** Plans with whether each keeps the limits as they are at this moment. */
export const plans = computed(() => {
  const all = model.value?.features ?? [];
  const found = grouped(answer.value?.plans ?? []);
  return found.map((plan, i) => ({
    ...plan, letter: letter(i), like: found.findIndex((one) => one.set === plan.set), digest: digest(plan), stale: !values.value || !keeps(wish.value, plan, all, values.value),
  })).map((plan, i, list) => ({ ...plan, like: plan.like < i ? list[plan.like].letter : null }));
});
/** Plans that change the same stand beside each other, in the order of the first of them. */
function grouped(found) {
  const sets = new Map();
  for (const plan of found) {
    const set = plan.changes.filter((one) => !one.then).map((one) => one.feature).sort().join("\n");
    sets.set(set, [...(sets.get(set) ?? []), { ...plan, set }]);
  }
  return [...sets.values()].flat();
}
/** On narrow screens: the plan whose card is in sight. */
export const inSight = signal(null);
export const chosen = computed(() => {
  const fresh = plans.value.filter((plan) => !plan.stale);
  return fresh.find((plan) => plan.digest === ((narrow.value && inSight.value) || wish.value.plan)) ?? fresh.find((plan) => plan.digest === wish.value.plan) ?? fresh[0] ?? null;
});
export const target = computed(() => answer.value?.target ?? wish.value.want);
export const changed = computed(() => new Set(plans.value.flatMap((plan) => plan.changes.map((one) => one.feature))));

const letter = (i) => String.fromCharCode(65 + (i % 26)) + (i >= 26 ? Math.floor(i / 26) : "");

/** The text of a result. */
export function resultText(label) {
  const at = model.value?.classes.indexOf(label) ?? -1;
  return at < 0 ? String(label ?? "") : model.value.texts[at];
}

/** The result that is asked for: the one said, or the other of two. */
export function wanted() {
  const { classes } = model.value;
  return wish.value.want ?? answer.value?.target ?? model.value.wanted ?? classes.at(-1);
}
