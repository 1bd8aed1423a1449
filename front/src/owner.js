// The limits of the model's owner: said once, folded, in words.
import { features, model } from "./state.js";
import { list, t } from "./texts.js";
import { limitText, moves } from "./words.js";

const textOf = (name) => features.value.get(name)?.text ?? name;

function One({ one }) {
  if (one.kind !== "transition") return <li>{limitText(one)}</li>;
  return <li>{textOf(one.feature)}<ul class="moves">{moves(one).map((text) => <li key={text}>{text}</li>)}</ul></li>;
}

/** All of them; those that keep a value as it is in one sentence. */
export function Owner() {
  const { limits } = model.value.own;
  if (!limits.length) return null;
  const frozen = limits.filter((one) => one.kind === "frozen");
  const kept = list(frozen.map((one) => textOf(one.feature)));
  return <details class="owner"><summary>{t("owner", { n: limits.length })}</summary>
    <ul class="plain">{frozen.length > 0 && <li>{t("limit.frozen.all", { feature: kept, n: frozen.length })}</li>}
      {limits.filter((one) => one.kind !== "frozen").map((one, i) => <One key={i} one={one} />)}</ul></details>;
}

/** In the row of a feature: that there are some, which the fold above tells in full. */
export function OwnerMark({ feature }) {
  const own = model.value.own.limits.filter((one) => one.feature === feature.name && one.kind !== "frozen");
  return own.length > 0 && <p class="quiet own" title={own.map(limitText).join("; ")}>{t("owner.row", { n: own.length })}</p>;
}
