// Help: what the page does, its keys and its signs.
import { KEYS, setSingle, single } from "./keys.js";
import { t } from "./texts.js";

export function Help() {
  return <><p>{t("help.about")}</p><dl class="keys">{Object.keys(KEYS).map((key) => <div><dt><kbd>{key.toUpperCase()}</kbd></dt><dd>{t(`key.${key}`)}</dd></div>)}
    <div><dt><kbd>Ctrl Z</kbd> <kbd>Ctrl Y</kbd></dt><dd>{t("key.undo")}</dd></div></dl>
    <label class="line"><input type="checkbox" checked={single.value} onChange={(event) => setSingle(event.target.checked)} /> <span>{t("help.single")}</span></label>
    <p class="quiet">{t("help.signs")}</p><p class="quiet">{t("help.track")}</p></>;
}
