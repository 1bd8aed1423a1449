// The body of a dialog or a drawer, fetched before anybody opens one.
import { signal } from "@preact/signals";
import { t } from "./texts.js";

const bodies = signal(null);
let coming = null;

/** Fetch what opens later; where that failed, the next opening tries again. */
export function fetchBodies() {
  coming ??= import("./later.js").then((found) => (bodies.value = found), () => (coming = null));
}

export function Body({ name, ...rest }) {
  const Found = bodies.value?.[name];
  if (Found) return <Found {...rest} />;
  fetchBodies();
  return <p class="quiet">{t("wait")}</p>;
}
