// Rows that nobody touched are folded: one line, with what can be dragged at once; the rest opens when it is wanted.
import { signal } from "@preact/signals";
import { isLimited } from "./limits.js";
import { VIRTUAL, model, wish } from "./state.js";
import { own } from "./values.js";

/** Rows that were touched, or folded again, by name. */
const told = signal({});
const tell = (name, open) => (told.value = { ...told.value, [name]: open });

/** Rows of a wide table have one height, and rows with limits show them. */
export const isOpen = ({ name }) => model.value.features.length > VIRTUAL || (own(told.value, name) ?? isLimited(wish.value, name));

/** The name of a feature, which opens and folds its row. */
export function Name({ feature, fixed }) {
  const title = feature.help || feature.text;
  if (fixed) return <span class="name" title={title}>{feature.text}</span>;
  const open = isOpen(feature);
  return <button type="button" class="name" title={title} aria-expanded={open} onClick={() => tell(feature.name, !open)}>{feature.text}</button>;
}

/** What opens the row of a control once it is touched. */
export function opens(feature) {
  const open = () => isOpen(feature) || tell(feature.name, true);
  return { onClick: open, onFocusIn: open };
}
