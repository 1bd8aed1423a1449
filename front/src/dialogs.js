// What opens over the page: native dialogs, which hold the focus and close with Escape.
import { useEffect, useRef } from "preact/hooks";
import * as icons from "./icons.js";
import { KEYS, setSingle, single } from "./keys.js";
import { Own } from "./own.js";
import { Receipt } from "./receipt.js";
import { Share } from "./share.js";
import { Sheet } from "./narrow.js";
import { dialog } from "./state.js";
import { t } from "./texts.js";
import { html } from "./view.js";

function Help() {
  return html`<p>${t("help.about")}</p><dl class="keys">${Object.keys(KEYS).map((key) => html`<div><dt><kbd>${key.toUpperCase()}</kbd></dt><dd>${t(`key.${key}`)}</dd></div>`)}
    <div><dt><kbd>Ctrl Z</kbd> <kbd>Ctrl Y</kbd></dt><dd>${t("key.undo")}</dd></div></dl>
    <label class="line"><input type="checkbox" checked=${single.value} onChange=${(event) => setSingle(event.target.checked)} /> <span>${t("help.single")}</span></label>
    <p class="quiet">${t("help.signs")}</p><p class="quiet">${t("help.track")}</p>`;
}

const BODIES = { help: Help, own: Own, receipt: Receipt, share: Share, limits: Sheet };

export function Dialogs() {
  const box = useRef(null);
  const open = dialog.value;
  useEffect(() => {
    if (open && !box.current.open) box.current.showModal();
    if (!open && box.current?.open) box.current.close();
  }, [open]);
  const Body = open && BODIES[open.name];
  return html`<dialog ref=${box} class=${open ? `dialog ${open.name}` : "dialog"} aria-labelledby="dialog-title" onClose=${() => (dialog.value = null)}>
    ${open && html`<header><h2 id="dialog-title">${t(`dialog.${open.name}`)}</h2><button type="button" class="icon-button" aria-label=${t("close")} onClick=${() => (dialog.value = null)}>${icons.close()}</button></header>
    <div class="dialog-body"><${Body} ...${open} /></div>`}
  </dialog>`;
}
