// The receipt: what was asked and found, to keep, to print, and to check again.
import { useEffect, useState } from "preact/hooks";
import { once } from "./ask.js";
import { Paper } from "./paper.js";
import { question } from "./state.js";
import { t } from "./texts.js";
import { refusedText } from "./words.js";

const SLOW = 20000;

/** Hand a text to the browser as a file. */
export function download(name, type, text) {
  const link = document.createElement("a");
  link.href = `data:${type};charset=utf-8,${encodeURIComponent(text)}`;
  link.download = name;
  link.click();
}

export function Receipt({ plans, asking }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    once("receipt", { ...(asking ?? JSON.parse(question.value)), keys: plans.map((plan) => plan.key) }, { timeout: SLOW }).then(setFound, setError);
  }, []);
  return <><Paper plans={plans} record={found?.json} />
    {error && <p class="problem" role="alert">{refusedText({ text: error.message, feature: null })}</p>}
    <div class="row right no-print">
      <button type="button" class="quiet" disabled={!found} onClick={() => download(found.name, "application/json", found.text)}>{t("receipt.json")}</button>
      <button type="button" class="quiet" disabled={!found} onClick={() => download(found.name.replace(/json$/, "html"), "text/html", found.html)}>{t("receipt.html")}</button>
      <button type="button" class="main" onClick={() => print()}>{t("receipt.print")}</button></div></>;
}
