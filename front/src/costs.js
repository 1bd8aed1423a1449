// What each limit costs: the share of plans that it rules out, and how many there were without it.
import { answer, question, settled } from "./state.js";
import { t } from "./texts.js";
import { limitText } from "./words.js";

export function Costs() {
  const pressure = [...(answer.value?.pressure ?? [])].sort((one, two) => two.share - one.share);
  if (!pressure.length) return <p class="quiet">{t("costs.none")}</p>;
  const without = new Map((settled.value?.text === question.value ? settled.value.without : []).map((one) => [one.id, one.found]));
  return <><p class="quiet">{t("costs.about")}</p><table class="costs"><thead><tr><th scope="col">{t("costs.limit")}</th><th scope="col">{t("costs.share")}</th><th scope="col">{t("costs.without")}</th></tr></thead>
    <tbody>{pressure.map((one) => <tr key={one.id}><th scope="row">{limitText(one)}</th>
      <td><span class="gauge wide" aria-hidden="true"><span style={{ width: `${Math.round(one.share * 100)}%` }}></span></span> {t("costs.of", { n: Math.round(one.share * 100) })}</td>
      <td>{without.has(one.id) ? t("costs.plans", { n: without.get(one.id) }) : "…"}</td></tr>)}</tbody></table></>;
}
