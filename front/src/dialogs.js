// What opens over the page: native dialogs, which hold the focus and close with Escape.
import { useEffect, useRef } from "preact/hooks";
import { Body } from "./body.js";
import * as icons from "./icons.js";
import { dialog } from "./state.js";
import { t } from "./texts.js";

export function Dialogs() {
  const box = useRef(null);
  const open = dialog.value;
  useEffect(() => {
    if (open && !box.current.open) box.current.showModal();
    if (!open && box.current?.open) box.current.close();
  }, [open]);
  return <dialog ref={box} class={open ? `dialog ${open.name}` : "dialog"} aria-labelledby="dialog-title" onClose={() => (dialog.value = null)}>
    {open && <><header><h2 id="dialog-title">{t(`dialog.${open.name}`)}</h2><button type="button" class="icon-button" aria-label={t("close")} onClick={() => (dialog.value = null)}>{icons.close()}</button></header>
    <div class="dialog-body"><Body {...open} /></div></>}
  </dialog>;
}
