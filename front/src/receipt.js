// The receipt: what was asked and found, to keep, to print, and to check again.
import { useEffect, useState } from "preact/hooks";
import { once } from "./ask.js";
import { model, question, resultText, target } from "./state.js";
import { day, numeral, t } from "./texts.js";
import { html } from "./view.js";
import { doing, limitTexts } from "./words.js";

const SLOW = 20000;

/** Hand a text to the browser as a file. */
function download(name, type, text) {
  const link = document.createElement("a");
  link.href = `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
  link.download = name;
  link.click();
}

const capital = (text) => text.replace(/^./u, (first) => first.toLocaleUpperCase());

/** What is printed: the limits as sentences, the plans, the verdicts, and what identifies the model. */
export function Paper({ plans, record }) {
  return html`<div class="paper"><h2>${t("receipt.title", { result: resultText(target.value) })}</h2>
    <p>${t("receipt.day", { day: day() })}</p>
    <h3>${t("receipt.limits")}</h3><ul>${limitTexts().map((text) => html`<li key=${text}>${text}</li>`)}</ul>
    <h3>${t("receipt.plans", { n: plans.length })}</h3>
    <ol>${plans.map((plan) => html`<li key=${plan.key}>${capital(doing(plan))}. <span class="quiet">${t("plan.sure", { percent: numeral(plan.percent) })}</span></li>`)}</ol>
    <p class="quiet print-id">${t("receipt.model", { name: model.value.name, id: model.value.fingerprint })}${record?.digest ? ` · ${t("receipt.number", { id: record.digest.slice(0, 16) })}` : ""}</p>
    <p class="quiet">${t("receipt.promise", { day: day() })}</p></div>`;
}

export function Receipt({ plans, asking }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    once("receipt", { ...(asking ?? JSON.parse(question.value)), keys: plans.map((plan) => plan.key) }, { timeout: SLOW }).then(setFound, setError);
  }, []);
  return html`<${Paper} plans=${plans} record=${found?.json} />
    ${error && html`<p class="problem" role="alert">${error.message}</p>`}
    <div class="row right no-print">
      <button type="button" class="quiet" disabled=${!found} onClick=${() => download(found.name, "application/json", found.text)}>${t("receipt.json")}</button>
      <button type="button" class="quiet" disabled=${!found} onClick=${() => download(found.name.replace(/json$/, "html"), "text/html", found.html)}>${t("receipt.html")}</button>
      <button type="button" class="main" onClick=${() => print()}>${t("receipt.print")}</button></div>`;
}
