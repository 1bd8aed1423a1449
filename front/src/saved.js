// Plans that were saved, kept for as long as the tab is open.
import { location, sessionStorage } from "./host.js";
import { model, person, question, saved, target, resultText, values, wish } from "./state.js";
import { t } from "./texts.js";

const KEY = "dicoflex.saved";
const MOST = 20;

export const isSaved = (plan, list) => list.some((one) => one.plan.key === plan.key && one.asking === (plan.asking ?? one.asking));

export function keep(list) {
  saved.value = list;
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ model: model.value.fingerprint, list }));
  } catch {
    // A full or forbidden store: the plans stay for as long as the page is open.
  }
}

/** Saved plans of the same model. */
export function recall() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY));
    if (found?.model === model.value.fingerprint) saved.value = found.list;
  } catch {
    saved.value = [];
  }
}

/** Save a plan, with what it answers, or drop it. */
export function toggleSaved(plan) {
  if (isSaved(plan, saved.value)) return keep(saved.value.filter((one) => one.plan.key !== plan.key));
  const who = wish.value.own ? t("own.short") : person.value?.id ?? "";
  return keep([...saved.value, { plan, who, asking: question.value, hash: location.hash, result: resultText(target.value), before: values.value }].slice(-MOST));
}
