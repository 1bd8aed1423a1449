// The page: its parts in the order in which they are read.
import { useState } from "preact/hooks";
import { Dialogs } from "./dialogs.js";
import { Drawers } from "./drawers.js";
import { Head } from "./head.js";
import { place, redo, undo } from "./history.js";
import * as icons from "./icons.js";
import { Cards } from "./narrow.js";
import { Owner } from "./owner.js";
import { Paper } from "./paper.js";
import { Nobody, Offers, Picker } from "./picker.js";
import { openReceipt } from "./plans.js";
import { answer, chosen, dialog, drawer, model, narrow, plans, saved, wish } from "./state.js";
import { Banner, Live, Status } from "./status.js";
import { Table } from "./table.js";
import { LANGUAGES, choose, language, t } from "./texts.js";
import { nextTheme, theme } from "./theme.js";
import { Wishes } from "./wishes.js";
import { sentence } from "./words.js";

function Bar() {
  const { at, top } = place.value;
  const tool = (label, icon, onClick, disabled = false) => <button type="button" class="icon-button" aria-label={label} title={label} disabled={disabled} onClick={onClick}>{icon}</button>;
  return <header class="bar"><p class="brand"><b>dicoflex</b> <span class="quiet">{model.value.name}</span></p><Picker />
    <nav class="toolbar" aria-label={t("toolbar")}>{tool(t("undo"), icons.undoing(), undo, at === 0)}{tool(t("redo"), icons.redoing(), redo, at >= top)}
      {tool(t("share"), icons.share(), () => (dialog.value = { name: "share" }))}
      <button type="button" class="quiet" aria-expanded={drawer.value === "saved"} onClick={() => (drawer.value = drawer.value === "saved" ? null : "saved")}>{t("drawer.saved", { n: saved.value.length })}</button>
      {tool(t(`theme.${theme.value}`), icons.halfMoon(), nextTheme)}{tool(t("dialog.help"), icons.help(), () => (dialog.value = { name: "help" }))}
      <select class="small" aria-label={t("language")} value={language.value} onChange={(event) => choose(event.target.value)}>{Object.entries(LANGUAGES).map(([code, name]) => <option value={code} lang={code} selected={code === language.value}>{name}</option>)}</select></nav></header>;
}

function Words() {
  const plan = chosen.value;
  const [copied, setCopied] = useState(null);
  if (!plan || answer.value?.status === "already") return null;
  const text = sentence(plan);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(plan.key));
  return <section class="words" aria-label={t("words")}><h2>{t("words.title", { letter: plan.letter })}</h2><p class="sentence">{text}</p>
    <div class="row"><button type="button" class="quiet" onClick={copy}>{copied === plan.key ? t("copied") : t("copy")}</button><button type="button" class="quiet" onClick={() => openReceipt([plan])}>{t("receipt")}</button></div></section>;
}

const Lead = () => model.value.lead && <p class="lead">{model.value.lead}</p>;

function Trust() {
  const { agreement } = model.value;
  return <footer class="foot"><p>{t("foot.causes")}</p>{agreement !== null && agreement !== undefined && <p>{t("foot.agreement", { percent: Math.floor(agreement * 1000) / 10 })}</p>}</footer>;
}

function Asked() {
  const already = answer.value?.status === "already";
  return <><Lead /><Head />{!narrow.value && <><Wishes /><Owner /></>}<Status />
    {already ? <Offers /> : narrow.value ? <><Cards /><Words /></> : <><Words /><Table /></>}
    {!dialog.value && <div class="only-print"><Paper plans={plans.value.filter((plan) => !plan.stale)} /></div>}<Drawers /></>;
}

export function App() {
  if (!model.value) return <main class="loading"><p class="late">{t("loading")}</p><div class="skeleton late" aria-hidden="true">{Array.from({ length: 8 }, () => <span></span>)}</div></main>;
  const nobody = wish.value.person === null && !wish.value.own;
  return <div class="page" lang={language.value}><Bar /><Banner /><main>{nobody ? <><Lead /><Nobody /><Drawers /></> : <Asked />}</main><Trust /><Live /><Dialogs /></div>;
}
