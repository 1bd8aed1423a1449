// Keys: single ones only while the focus is in the table or nowhere, and they can be switched off.
import { signal } from "@preact/signals";
import { change, redo, undo } from "./history.js";
import { localStorage } from "./host.js";
import { lock } from "./limits.js";
import { chooseNext } from "./plans.js";
import { chosen, dialog, features, narrow, wish } from "./state.js";
import { toggleSaved } from "./saved.js";

const KEPT = "dicoflex.keys";
export const single = signal(localStorage.getItem(KEPT) !== "off");
export const setSingle = (on) => {
  single.value = on;
  localStorage.setItem(KEPT, on ? "on" : "off");
};

export const KEYS = {
  "/": () => document.getElementById("picker")?.focus(),
  l: () => lockHere(),
  "[": () => chooseNext(-1),
  "]": () => chooseNext(1),
  s: () => chosen.value && toggleSaved(chosen.value),
  "?": () => (dialog.value = { name: "help" }),
};

function lockHere() {
  const name = document.activeElement?.closest("[data-feature]")?.dataset.feature;
  if (name && !features.value.get(name).locked) change(lock(wish.value, name));
}

const typing = (target) => target.matches("input:not([type=range], [type=checkbox], [type=radio]), textarea, select");
const here = (target) => target === document.body || target.closest("table.plans") || target.closest(".board");

function pressed(event) {
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && !event.altKey && (key === "z" || key === "y")) {
    if (typing(event.target) && event.target.type !== "number") return;
    event.preventDefault();
    return key === "y" || event.shiftKey ? redo() : undo();
  }
  if (!single.value || event.ctrlKey || event.metaKey || event.altKey || dialog.value || narrow.value) return;
  if (!KEYS[key] || typing(event.target) || !here(event.target)) return;
  event.preventDefault();
  KEYS[key]();
}

export const listen = () => document.addEventListener("keydown", pressed);
