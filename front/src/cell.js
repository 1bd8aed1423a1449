// The page in a notebook's cell: messages over the notebook's own channel, and what the widget and the page both know.
import { effect, untracked } from "@preact/signals";
import { NoAnswer, Refusal, line, setTransport } from "./ask.js";
import { calm, change, moving } from "./history.js";
import { notebook } from "./host.js";
import { START, askingOf, wishOf } from "./limits.js";
import { model, saved, wish } from "./state.js";

const settle = (said) => {
  if (said.problem) throw new Refusal(said.problem);
  return said.answer;
};
const lost = (error) => {
  throw error?.ended ? new NoAnswer("ended") : error;
};

/** Asks the kernel. */
const kernel = {
  ask: (kind, body, ended) => notebook.ask(kind, body, ended).then(settle, lost),
  async *lines(kind, body, ended) {
    for await (const said of notebook.lines(kind, body, ended)) yield settle(said);
  },
};

/** The part of the question that the widget's `request` states. */
function requested() {
  const { person: _, values: __, ...rest } = askingOf(wish.value, model.value);
  return rest;
}

const differs = (one, two) => JSON.stringify(one) !== JSON.stringify(two);

/** What the notebook set. */
function follow(name, value) {
  if (name === "saved") {
    if (differs(value, saved.value)) saved.value = value ?? [];
  } else if (name === "person") {
    if (value && value !== wish.value.person) change({ person: value, own: null, hand: {}, pin: {}, not: [], plan: START.plan });
  } else if (value && differs(value, requested())) {
    const { target = null, n = START.n, p = null, seed = START.seed, confidence = null } = value;
    change({ ...wishOf({ pinned: {}, refused: [], constraints: {}, ...value, confidence }, wish.value), want: target ?? model.value.wanted, n, p, seed });
  }
}

/** Talk to the kernel instead of to a server. */
export const connect = () => setTransport(kernel);

/** Keep the widget's person, request and saved plans and the page's in step, in both directions. */
export function keepInStep() {
  for (const name of ["request", "person", "saved"]) follow(name, notebook.get(name));
  notebook.onChange(follow);
  notebook.onEnd(() => (line.value = { state: "ended", error: null }));
  effect(() => {
    calm.value;
    if (moving.value) return;
    const { person, own } = wish.value;
    untracked(() => notebook.set({ person: person ?? "", own, request: requested() }));
  });
  effect(() => notebook.set({ saved: saved.value }));
}
