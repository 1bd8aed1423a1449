// The head: who it is about, the result now, the wanted one, and how far it is.
import { change } from "./history.js";
import { Meter } from "./meter.js";
import { answer, model, person, resultText, wanted, wish } from "./state.js";
import { almost, numeral, parts, percent, t } from "./texts.js";

export function Head() {
  const now = answer.value?.now;
  const result = now?.result ?? person.value?.result;
  const share = now?.probability ?? 0;
  const who = wish.value.own ? t("own.you") : `${t("Person")} ${wish.value.person}`;
  const want = wanted();
  return <section class="head" aria-label={t("head")}>
    <div class="verdict"><p class="who">{who}</p>
      <h1>{result === undefined ? "…" : parts("head.result", { result: <strong>{resultText(result)}</strong> })}</h1></div>
    <div class="want"><label for="want">{t("want")}</label>
      <select id="want" value={String(want)} onChange={(event) => change({ want: model.value.classes.find((label) => String(label) === event.target.value) })}>
        {model.value.classes.map((label) => <option value={String(label)} selected={label === want}>{resultText(label)}</option>)}</select></div>
    {now && <Meter share={share} needed={answer.value.needed} text={almost(now.result !== want, share, numeral(now.percent ?? percent(share)), answer.value.needed, numeral(answer.value.needed_percent))} neededText={numeral(answer.value.needed_percent)} />}
  </section>;
}
