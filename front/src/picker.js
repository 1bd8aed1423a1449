// Choosing a person: search, previous and next, three who lack the wanted result, or values of one's own.
import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { ask, once } from "./ask.js";
import { Body } from "./body.js";
import { change } from "./history.js";
import * as icons from "./icons.js";
import { START } from "./limits.js";
import { dialog, model, person, resultText, wish } from "./state.js";
import { almost, numeral, t } from "./texts.js";
import { classes } from "./view.js";

const MOST = 200;
const PAUSE = 120;

export const people = signal({ total: 0, people: [], near: [], search: "" });

/** Go to somebody; limits stay, what was done by hand does not. */
export const go = (id) => change({ person: id, own: null, hand: {}, pin: {}, not: [], plan: START.plan });

/** The people that a search finds. */
export function find(search = "") {
  ask("people", { search, offset: 0, most: MOST, order: "file" }, (found) => (people.value = { ...found, search }), { unnumbered: true });
}

/** How sure the wanted result is for somebody of the list, in words that fit the result that they have. */
export const chance = (one) => almost(one.result !== model.value.wanted, one.probability, numeral(one.percent));

/** To the one before or after in the file, as the server knows them. */
function Step({ to, name, children }) {
  const id = wish.value.own ? null : person.value?.[to] ?? null;
  return <button type="button" class="icon-button" aria-label={name} title={name} aria-disabled={id === null} onClick={() => id !== null && go(id)}>{children}</button>;
}

let typing = null;

function Option({ one, active, id, onPick }) {
  return <li role="option" id={id} aria-selected={active} class={classes(active && "active")} onMouseDown={(event) => (event.preventDefault(), onPick(one))}>
    <span>{one.label}</span><span class="quiet">{resultText(one.result)} · {chance(one)}</span></li>;
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
        {open && people.value.total > listed.length && <li role="option" aria-disabled="true" aria-selected="false" class="quiet">{t("picker.more", { n: people.value.total - listed.length })}</li>}
        {open && !listed.length && <li role="option" aria-disabled="true" aria-selected="false" class="quiet">{t("picker.none")}</li>}
      </ul></div>
    <Step to="previous" name={t("picker.previous")}>{icons.left()}</Step><Step to="next" name={t("picker.next")}>{icons.right()}</Step>
  </div>;
}

function Offer({ one }) {
  return <button type="button" class="offer" onClick={() => go(one.id)}><strong>{one.label}</strong>
    <span class="quiet">{resultText(one.result)} · {chance(one)}</span></button>;
}

/** Three who lack the wanted result, near the mark, for who looks around. */
export function Offers({ children }) {
  const { near } = people.value;
  return <>{near.length > 0 && <p class="quiet">{t("nobody.offered")}</p>}
    <div class="offers">{near.map((one) => <Offer key={one.id} one={one} />)}{children}</div></>;
}

/** Before anybody is chosen. */
export function Nobody() {
  return <section class="nobody"><h1>{t("nobody")}</h1>
    <Offers><button type="button" class="offer plain" onClick={() => (dialog.value = { name: "own" })}><strong>{t("own")}</strong><span class="quiet">{t("own.hint", { n: model.value.features.length })}</span></button></Offers>
    <Body name="everyone" /></section>;
}
