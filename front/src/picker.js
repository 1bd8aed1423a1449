// Choosing a person: search, previous and next, three who lack the wanted result, or values of one's own.
import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { ask, once } from "./ask.js";
import { change } from "./history.js";
import * as icons from "./icons.js";
import { START } from "./limits.js";
import { dialog, model, resultText, wish } from "./state.js";
import { numeral, t } from "./texts.js";
import { classes } from "./view.js";

const MOST = 200;
const PAUSE = 120;

export const people = signal({ total: 0, people: [], offered: [], search: "" });

/** Go to somebody; limits stay, what was done by hand does not. */
export const go = (id) => change({ person: id, own: null, hand: {}, pin: {}, not: [], plan: START.plan });

/** Everybody who was listed so far, by name. */
const known = new Map();
function list(found, search, order) {
  found.people.forEach((one) => known.set(one.id, one));
  people.value = { ...found, search, order };
}

/** The people that a search finds. */
export function find(search = "", order = people.value.order ?? "file") {
  ask("people", { search, offset: 0, most: MOST, order }, (found) => list(found, search, order), { unnumbered: true });
}

/** The one before or after in the file. */
async function step(by) {
  const listed = people.value.people;
  const at = listed.findIndex((one) => one.id === wish.value.person);
  if (at >= 0 && listed[at + by]) return go(listed[at + by].id);
  const found = await once("people", { search: "", offset: 0, most: MOST, order: "file" });
  list(found, "", "file");
  const here = found.people.findIndex((one) => one.id === wish.value.person);
  const next = found.people[here + by];
  if (next) go(next.id);
}

let typing = null;

function Option({ one, active, id, onPick }) {
  return <li role="option" id={id} aria-selected={active} class={classes(active && "active")} onMouseDown={(event) => (event.preventDefault(), onPick(one))}>
    <span>{one.label}</span><span class="quiet">{resultText(one.result)} · {numeral(one.percent)}</span></li>;
}

export function Picker() {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState(null);
  const [active, setActive] = useState(0);
  const field = useRef(null);
  const listed = people.value.people;
  const pick = (one) => {
    setOpen(false);
    setText(null);
    if (one && one.id !== wish.value.person) go(one.id);
  };
  const type = (event) => {
    setText(event.target.value);
    setOpen(true);
    setActive(0);
    clearTimeout(typing);
    typing = setTimeout(find, PAUSE, event.target.value);
  };
  const move = (by) => {
    setOpen(true);
    const to = open ? Math.min(listed.length - 1, Math.max(0, active + by)) : active;
    setActive(to);
    document.getElementById(`person-${to}`)?.scrollIntoView({ block: "nearest" });
  };
  // Who types quickly is ahead of the list.
  const enter = async () => {
    if (text === null || people.value.search === text) return pick(listed[active]);
    const found = await once("people", { search: text, offset: 0, most: 1, order: "file" }).catch(() => null);
    return found && pick(found.people[0]);
  };
  const keys = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: () => open && enter(),
    Escape: () => (setOpen(false), setText(null)),
  };
  const shownText = text ?? (wish.value.own ? t("own.short") : wish.value.person ?? "");
  return <div class="picker">
    <label for="picker">{t("picker")}</label>
    <div class="combo"><input id="picker" ref={field} role="combobox" autocomplete="off" spellcheck={false} aria-expanded={open} aria-controls="people" aria-autocomplete="list"
        aria-activedescendant={open && listed.length ? `person-${active}` : undefined} placeholder={t("picker.hint")} value={shownText}
        onFocus={(event) => { event.target.select(); if (!listed.length) find(); }} onClick={() => setOpen(true)} onInput={type}
        onBlur={() => (setOpen(false), setText(null))}
        onKeyDown={(event) => keys[event.key] && (event.preventDefault(), event.stopPropagation(), keys[event.key]())} />
      <ul id="people" role="listbox" aria-label={t("picker.list")} hidden={!open}>
        {open && listed.map((one, i) => <Option key={one.id} one={one} active={i === active} id={`person-${i}`} onPick={pick} />)}
        {open && !listed.length && <li role="option" aria-disabled="true" aria-selected="false" class="quiet">{t("picker.none")}</li>}
      </ul></div>
    <button type="button" class="icon-button" aria-label={t("picker.previous")} title={t("picker.previous")} onClick={() => step(-1)}>{icons.left()}</button>
    <button type="button" class="icon-button" aria-label={t("picker.next")} title={t("picker.next")} onClick={() => step(1)}>{icons.right()}</button>
  </div>;
}

function Offer({ id }) {
  const one = known.get(id);
  return <button type="button" class="offer" onClick={() => go(id)}><strong>{one?.label ?? id}</strong>
    <span class="quiet">{one && `${resultText(one.result)} · ${numeral(one.percent)}`}</span></button>;
}

/** Three who lack the wanted result, near the mark, for who looks around. */
export function Offers({ children }) {
  const { offered } = people.value;
  return <>{offered.length > 0 && <p class="quiet">{t("nobody.offered")}</p>}
    <div class="offers">{offered.map((id) => <Offer key={id} id={id} />)}{children}</div></>;
}

/** Before anybody is chosen. */
export function Nobody() {
  return <section class="nobody"><h1>{t("nobody")}</h1>
    <Offers><button type="button" class="offer plain" onClick={() => (dialog.value = { name: "own" })}><strong>{t("own")}</strong><span class="quiet">{t("own.hint", { n: model.value.features.length })}</span></button></Offers>
  </section>;
}
