// What every part of the page is made with; the bundler puts `h` and `Fragment` where the markup needs them.
export { Fragment, h } from "preact";
export const classes = (...names) => names.filter(Boolean).join(" ");
