// The receipt on paper.
import { model, resultText, target } from "./state.js";
import { day, numeral, t } from "./texts.js";
import { capital, doing, limitTexts } from "./words.js";

/** What is printed: the limits as sentences, the plans, the verdicts, and what identifies the model. */
export function Paper({ plans, record }) {
  return <div class="paper"><h2>{t("receipt.title", { result: resultText(target.value) })}</h2>
    <p>{t("receipt.day", { day: day() })}</p>
    <h3>{t("receipt.limits")}</h3><ul>{limitTexts().map((text) => <li key={text}>{text}</li>)}</ul>
    <h3>{t("receipt.plans", { n: plans.length })}</h3>
    <ol>{plans.map((plan) => <li key={plan.key}>{capital(doing(plan))}. <span class="quiet">{t("plan.sure", { percent: numeral(plan.percent) })}</span></li>)}</ol>
    <p class="quiet print-id">{t("receipt.model", { name: model.value.name, id: model.value.fingerprint })}{record?.digest ? ` · ${t("receipt.number", { id: record.digest.slice(0, 16) })}` : ""}</p>
    <p class="quiet">{t("receipt.promise", { day: day(), decider: model.value.decider || t("decider") })}</p></div>;
}
