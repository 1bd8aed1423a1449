// Every change of what is asked: kept in the link, undone by Back, and called settled when nothing moved for a while.
import { signal } from "@preact/signals";
import { history, location, sessionStorage } from "./host.js";
import { START } from "./limits.js";
import { read, write } from "./link.js";
import { answer, banner, relaxations, model, refusal, score, settled, wish } from "./state.js";

const SETTLE = 250;
const REWRITE = 200; // browsers slow pages down that write the address more often

/** Counts up whenever things have settled. */
export const calm = signal(0);
/** Where in the steps we are, and how many there are; `steps` holds what each was. */
export const place = signal({ at: 0, top: 0 });
export const steps = signal([]);

/** Whether something moved a moment ago. */
export const moving = signal(false);

let gesture = false;
let held = false; // a key or the pointer is down: a gesture lasts until it is let go, however long it rests
let timer = null;
let rewrite = null;
let unread = [];

const KEPT = "dicoflex.steps";
const hash = () => write(wish.value, model.value, unread);
const entry = (at) => ({ at, own: wish.value.own });

/** Change what is asked. One gesture, such as a drag, is one step. */
export function change(patch) {
  const before = wish.value;
  const after = { ...before, ...patch };
  if (JSON.stringify(after) === JSON.stringify(before)) return;
  wish.value = after;
  refusal.value = null;
  const what = { keys: Object.keys(patch), before, after };
  if (gesture) {
    steps.value = [...steps.value.slice(0, -1), { ...steps.value.at(-1), after }];
    rewrite ??= setTimeout(rewriteNow, REWRITE);
  } else push(what);
  later();
}

function push(what) {
  gesture = true;
  const at = place.value.at + 1;
  place.value = { at, top: at };
  steps.value = [...steps.value.slice(0, at - 1), what];
  history.pushState(entry(at), "", hash());
  sessionStorage.setItem(KEPT, at);
}

function rewriteNow() {
  clearTimeout(rewrite);
  rewrite = null;
  history.replaceState(entry(place.value.at), "", hash());
}

/** Settle a while after the last event. */
export function later() {
  clearTimeout(timer);
  moving.value = true;
  timer = setTimeout(close, SETTLE);
}

function close() {
  if (gesture) rewriteNow();
  gesture &&= held;
  moving.value = false;
  calm.value += 1;
}

function finish() {
  held = false;
  if (!gesture) return;
  clearTimeout(timer);
  close();
}

const hold = () => (held = true);
const release = () => {
  held = false;
  if (gesture) later();
};

export const undo = () => {
  finish();
  if (place.value.at > 0) history.back();
};
export const redo = () => {
  finish();
  if (place.value.at < place.value.top) history.forward();
};
export const goTo = (at) => {
  finish();
  if (at !== place.value.at) history.go(at - place.value.at);
};
/** Everything as at the start, for the same person. */
export const startOver = () => change({ ...START, person: wish.value.person, own: wish.value.own, want: wish.value.want });

function restore(state) {
  const found = read(location.hash, model.value);
  unread = found.unread;
  banner.value = { unread: unread.map(([key]) => key), other: found.other };
  const before = wish.value;
  wish.value = { ...found.wish, own: state?.own ?? null };
  if (before.person !== wish.value.person || before.own !== wish.value.own) forget();
  refusal.value = null;
}

/** Answers about somebody else are not shown. */
export function forget() {
  answer.value = settled.value = relaxations.value = score.value = null;
}

/** Read the link that the page was opened with, and follow Back and Forward from now on. */
export function begin() {
  const at = history.state?.at ?? 0;
  place.value = { at, top: Math.max(at, Number(history.state ? sessionStorage.getItem(KEPT) : 0)) };
  steps.value = Array(place.value.top).fill(null);
  restore(history.state);
  history.replaceState(entry(at), "", hash());
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, hold, true);
  for (const name of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(name, release, true);
  addEventListener("popstate", (event) => {
    gesture = false;
    clearTimeout(rewrite);
    rewrite = null;
    const to = event.state?.at ?? place.value.at;
    place.value = { at: to, top: Math.max(to, place.value.top) };
    restore(event.state);
    if (!event.state) history.replaceState(entry(to), "", hash());
    later();
  });
  later();
}
