// Elements: tagged templates instead of a compiled syntax.
export { html } from "htm/preact";
export const classes = (...names) => names.filter(Boolean).join(" ");
