// Which values a feature may take: ticks for a few, a search and a list for many.
import { useState } from "preact/hooks";
import { change } from "./history.js";
import { allOf, setOnly } from "./limits.js";
import { answer, score, wish } from "./state.js";
import { parts, t } from "./texts.js";
import { own, shown } from "./values.js";
import { classes } from "./view.js";

const FEW = 12;
const LISTED = 300;

function useTicks(feature) {
  const [refused, setRefused] = useState(false);
  const ticked = own(wish.value.only, feature.name) ?? allOf(feature);
  const set = (values) => {
    const patch = setOnly(wish.value, feature, allOf(feature).filter((value) => values.includes(value)));
    setRefused(!patch);
    change(patch);
  };
  const toggle = (value) => set(ticked.includes(value) ? ticked.filter((one) => one !== value) : [...ticked, value]);
  return { ticked, set, toggle, refused };
}

const probable = (feature, value) => {
  const found = own(score.value?.strips, feature.name)?.find((one) => one.value === value);
  return found && found.probability >= (answer.value?.needed ?? 0.5);
};

function Tick({ feature, value, now, ticks, disabled }) {
  const current = value === now && !wish.value.strict;
  const landed = own(answer.value?.reach, feature.name)?.values?.includes(value);
  return <label class={classes("tick", value === now && "now", landed && "landed", probable(feature, value) && "yes", value === null && "none")} title={shown(feature, value)}>
    <input type="checkbox" checked={current || ticks.ticked.includes(value)} disabled={disabled || current}
      aria-label={value === null ? t("levels.missing", { feature: feature.text }) : undefined}
      onChange={(event) => { ticks.toggle(value); event.target.checked = (own(wish.value.only, feature.name) ?? allOf(feature)).includes(value); }} />
    <span>{shown(feature, value)}</span>
  </label>;
}

const Sentence = ({ ticks }) => ticks.refused && <p class="problem" role="alert">{t("levels.none")}</p>;

/** Values that it may become. */
export function Levels({ feature, now, disabled }) {
  const ticks = useTicks(feature);
  if (feature.levels.length > FEW) return <Many {...{ feature, now, disabled, ticks }} />;
  return <fieldset class="ticks"><legend class="hidden">{t("levels.name", { feature: feature.text })}</legend>
    {allOf(feature).map((value) => <Tick key={String(value)} {...{ feature, value, now, ticks, disabled }} />)}
    <Sentence ticks={ticks} />
  </fieldset>;
}

function Many({ feature, now, disabled, ticks }) {
  const [open, setOpen] = useState(false);
  const [search, setSearch] = useState("");
  const close = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    setOpen(false);
    event.currentTarget.querySelector("button").focus();
  };
  return <div class="many" onKeyDown={close}>
    <button type="button" class="quiet" disabled={disabled} aria-expanded={open} aria-label={t("levels.open", { feature: feature.text, n: ticks.ticked.length, total: allOf(feature).length })} onClick={() => setOpen(!open)}>
      {t("levels.count", { n: ticks.ticked.length, total: allOf(feature).length })} <span aria-hidden="true">{open ? "▾" : "▸"}</span></button>
    {open && <ManyList {...{ feature, now, disabled, ticks, search, setSearch }} />}
    <Sentence ticks={ticks} />
  </div>;
}

function ManyList({ feature, now, disabled, ticks, search, setSearch }) {
  const sought = search.toLocaleLowerCase();
  const found = allOf(feature).filter((value) => shown(feature, value).toLocaleLowerCase().includes(sought));
  const used = (own(answer.value?.reach, feature.name)?.values ?? []).filter((value) => value !== now);
  return <div class="panel">
    <input type="search" value={search} placeholder={t("search")} aria-label={t("levels.search", { feature: feature.text })} onInput={(event) => setSearch(event.target.value)} />
    <div class="row">
      <button type="button" class="quiet" onClick={() => ticks.set(search ? [...new Set([...ticks.ticked, ...found])] : allOf(feature))}>{t("levels.all")}</button>
      <button type="button" class="quiet" onClick={() => ticks.set(search ? ticks.ticked.filter((value) => !found.includes(value)) : [])}>{t("levels.nothing")}</button>
      {search && <button type="button" class="quiet" onClick={() => ticks.set(found)}>{t("levels.only")}</button>}
      <button type="button" class="quiet" disabled={!used.length} onClick={() => ticks.set(used)}>{t("levels.used")}</button>
    </div>
    <fieldset class="ticks tall"><legend class="hidden">{t("levels.name", { feature: feature.text })}</legend>
      {found.slice(0, LISTED).map((value) => <Tick key={String(value)} {...{ feature, value, now, ticks, disabled }} />)}
    </fieldset>
    {found.length > LISTED && <p class="quiet">{parts("levels.more", { n: found.length - LISTED })}</p>}
  </div>;
}
