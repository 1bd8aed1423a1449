// Light or dark: as the system or the notebook says, unless said otherwise here.
import { effect, signal } from "@preact/signals";
import { localStorage, notebook } from "./host.js";

const KEPT = "dicoflex.theme";
const ORDER = ["auto", "light", "dark"];
export const theme = signal(ORDER.includes(localStorage.getItem(KEPT)) ? localStorage.getItem(KEPT) : "auto");
export const nextTheme = () => {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length];
  localStorage.setItem(KEPT, theme.value);
};
const around = signal("auto");
notebook?.theme((found) => (around.value = found));
export const wear = () => effect(() => (document.documentElement.dataset.theme = theme.value === "auto" ? around.value : theme.value));
