// Everybody of the file, on the start page: who they are, what the answer is now, and how far off the wanted one.
import { useEffect, useState } from "preact/hooks";
import { once } from "./ask.js";
import { chance, go } from "./picker.js";
import { Bar } from "./plans.js";
import { features, model, resultText } from "./state.js";
import { t } from "./texts.js";
import { told } from "./values.js";

const PAGE = 25;
const PAUSE = 150;

/** A list that grows by pages, made anew when the search or the order changes. */
function usePeople(search, order) {
  const [found, setFound] = useState(null);
  const [lost, setLost] = useState(false);
  const fetchPage = async (before) => {
    try {
      const page = await once("people", { search, offset: before.length, most: PAGE, order });
      setLost(false);
      setFound({ ...page, search, order, people: [...before, ...page.people] });
    } catch {
      setLost(true);
    }
  };
  useEffect(() => {
    const timer = setTimeout(fetchPage, found ? PAUSE : 0, []);
    return () => clearTimeout(timer);
  }, [search, order]);
  return { found, lost, more: () => fetchPage(found?.people ?? []) };
}

function One({ one }) {
  const result = resultText(one.result);
  return <tr><th scope="row"><button type="button" class="link" onClick={() => go(one.id)}>{one.id}</button></th>
    {one.about.map(({ feature, value, text }) => <td key={feature} data-name={features.value.get(feature).text}>{told(features.value.get(feature), text, value)}</td>)}
    <td data-name={t("everyone.now")}>{result}</td><td data-name={t("everyone.far", { result: resultText(model.value.wanted) })}><Bar share={one.probability} /> {chance(one)}</td></tr>;
}

export function Everyone() {
  const [search, setSearch] = useState("");
  const [order, setOrder] = useState("near");
  const { found, lost, more } = usePeople(search, order);
  const { count } = model.value.people;
  const wanted = resultText(model.value.wanted);
  return <section class="everyone"><h2>{t("everyone")}</h2>
    <p class="quiet">{found ? t("everyone.about", { n: count, some: found.lacking, result: wanted }) : t("wait")}</p>
    <div class="row"><input type="search" aria-label={t("everyone.search")} placeholder={t("everyone.search")} value={search} onInput={(event) => setSearch(event.target.value)} />
      <label>{t("sort")} <select value={order} onChange={(event) => setOrder(event.target.value)}><option value="near">{t("everyone.near")}</option><option value="file">{t("sort.file")}</option></select></label></div>
    {lost && <p class="problem" role="alert">{t("line.nothing")} <button type="button" class="link" onClick={more}>{t("line.retry")}</button></p>}
    {!found && !lost && <div class="skeleton" aria-hidden="true">{Array.from({ length: 6 }, () => <span></span>)}</div>}
    {found?.total === 0 && <p class="quiet">{t("picker.none")}</p>}
    {found?.total > 0 && <><div class="scroll" tabindex="0" role="region" aria-label={t("everyone")}><table class="listed"><thead><tr><th scope="col">{t("Person")}</th>{found.people[0].about.map(({ feature }) => <th scope="col" key={feature}>{features.value.get(feature).text}</th>)}
      <th scope="col">{t("everyone.now")}</th><th scope="col">{t("everyone.far", { result: wanted })}</th></tr></thead>
      <tbody>{found.people.map((one) => <One key={one.id} one={one} />)}</tbody></table></div>
      <p class="row"><span class="quiet">{t("everyone.shown", { n: found.people.length, total: found.total })}</span>
        {found.people.length < found.total && <button type="button" class="quiet" onClick={more}>{t("everyone.more")}</button>}</p></>}</section>;
}
