// What opens later: the bodies of dialogs and drawers, in a file that comes once the plans are there.
import words from "../texts/en-later.json";
import "./main.js"; // all that is not for later stays in one file
import { learn } from "./texts.js";

learn(words);

export { Cohort as cohort } from "./cohort.js";
export { Costs as costs } from "./costs.js";
export { Curve as curve } from "./curve.js";
export { Everyone as everyone } from "./everyone.js";
export { Help as help } from "./help.js";
export { More as more } from "./more.js";
export { Own as own } from "./own.js";
export { Receipt as receipt } from "./receipt.js";
export { Saved as saved } from "./compare.js";
export { Sheet as limits } from "./sheet.js";
export { Share as share } from "./share.js";
export { StepsSoFar as steps } from "./steps.js";
export { shown } from "./values.js";
