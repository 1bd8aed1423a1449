// How far the answer is from the one wanted.
import { t } from "./texts.js";

/** A bar from 0 to 100 %, with a mark at what is needed. */
export function Meter({ share, needed, text, neededText }) {
  return <div class="meter" role="img" aria-label={t("meter.name", { percent: text, needed: neededText })}>
    <div class="rail"><span class="fill" style={{ width: `${share * 100}%` }}></span><span class="mark" style={{ left: `${needed * 100}%` }}></span><span class="dot" style={{ left: `${share * 100}%` }}></span></div>
    <div class="legend" aria-hidden="true"><span><b class="dot-key"></b> {t("meter.now", { percent: text })}</span><span><b class="mark-key"></b> {t("meter.needed", { percent: neededText })}</span></div>
  </div>;
}
