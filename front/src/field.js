// Fields for numbers: what is being typed stays until it is done.
import { useRef, useState } from "preact/hooks";

const readNumber = (text) => (text.trim() === "" ? null : Number(text));

/** A number field; `onValue(number or null)` on every valid change where `live`, else when it is committed. */
export function NumberField({ value, onValue, live = false, onEnter, class: name, ...rest }) {
  const [draft, setDraft] = useState(null);
  const typed = useRef(null);
  const commit = (text) => {
    setDraft(null);
    const found = readNumber(text);
    if (found !== value && !Number.isNaN(found)) onValue(found);
  };
  return <input
    type="number" step="any" class={name} ref={typed}
    value={draft ?? value ?? ""}
    onInput={(event) => {
      setDraft(event.target.value);
      if (live && event.target.validity.valid !== false) onValue(readNumber(event.target.value));
    }}
    onChange={(event) => commit(event.target.value)}
    onBlur={() => setDraft(null)}
    onKeyDown={(event) => event.key === "Enter" && (commit(event.target.value), onEnter?.())}
    {...rest}
  />;
}

/** A number with a button on each side. */
export function Stepper({ value, onValue, min, max, label, less, more, placeholder }) {
  const to = (next) => onValue(next === null ? null : Math.min(max, Math.max(min, next)));
  return <span class="stepper">
    <button type="button" aria-label={less} disabled={value !== null && value <= min} onClick={() => to((value ?? max + 1) - 1)}>−</button>
    <NumberField value={value} min={min} max={max} step="1" aria-label={label} placeholder={placeholder}
      onValue={(next) => to(next === null ? (placeholder ? null : value) : Math.round(next))} />
    <button type="button" aria-label={more} disabled={placeholder ? value === null : value >= max}
      onClick={() => to(placeholder && value >= max ? null : (value ?? max) + 1)}>+</button>
  </span>;
}
