// The widget: a frame that holds the page, and a bridge from it to the kernel. A frame, as the page then has a document,
// keys, a width and steps of its own, and the notebook keeps its.
/* global FILES */

const BARE = { "explorer.js": "dicoflex/explorer", "later.js": "dicoflex/later" };

/** A file of the page whose imports have names that the frame's import map knows. */
const bare = (text) => Object.entries(BARE).reduce((made, [file, name]) => made.replaceAll(`"./${file}"`, `"${name}"`), text);

/** Runs in the frame, before the page. */
function boot() {
  const { files } = (globalThis.dicoflexNotebook = frameElement.dicoflexNotebook);
  const script = (type, text) => document.head.append(Object.assign(document.createElement("script"), { type, textContent: text }));
  const address = (name) => URL.createObjectURL(new Blob([files[name]], { type: "text/javascript" }));
  script("importmap", JSON.stringify({ imports: { "dicoflex/explorer": address("explorer.js"), "dicoflex/later": address("later.js") } }));
  script("module", 'import "dicoflex/explorer"');
}

const page = () => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dicoflex explorer</title><style>${FILES["explorer.css"]}</style></head><body><div id="explorer"></div><script>(${boot})()</script></body></html>`;

// -- the notebook's colours ---------------------------------------------------------------------------------------

/** Whether what is behind an element is dark. */
function isDark(element) {
  for (let one = element; one; one = one.parentElement) {
    const [red, green, blue, alpha = 1] = (getComputedStyle(one).backgroundColor.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    if (alpha > 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function watchColours(element, told) {
  const look = () => told(isDark(element) ? "dark" : "light");
  const watcher = new MutationObserver(() => setTimeout(look, 50));
  for (const one of [document.documentElement, document.body]) watcher.observe(one, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  return () => (watcher.disconnect(), system.removeEventListener("change", look));
}

// -- the bridge ---------------------------------------------------------------------------------------------------

const SYNCED = ["person", "request", "saved"];

function bridge(model, element) {
  const view = crypto.randomUUID();
  const waiting = new Map();
  const changed = [];
  const ended = [];
  const themed = [];
  const cleaning = [];
  let count = 0;
  const on = (name, act) => (model.on(name, act), cleaning.push(() => model.off(name, act)));

  on("msg:custom", (said) => said.view === view && waiting.get(said.id)?.(said));
  for (const name of SYNCED) on(`change:${name}`, () => changed.forEach((act) => act(name, model.get(name))));
  on("comm_live_update", () => ended.forEach((act) => act()));
  cleaning.push(watchColours(element, (theme) => themed.forEach((act) => act(theme))));

  const send = (kind, body, act, signal) => {
    const id = ++count;
    waiting.set(id, act);
    signal?.addEventListener("abort", () => waiting.delete(id));
    model.send({ view, id, kind, body });
    return () => waiting.delete(id);
  };
  return {
    files: { ...FILES, "explorer.js": bare(FILES["explorer.js"]), "later.js": bare(FILES["later.js"]) },
    theme: (act) => (themed.push(act), act(isDark(element) ? "dark" : "light")),
    get: (name) => model.get(name),
    set(values) {
      for (const [name, value] of Object.entries(values)) if (JSON.stringify(model.get(name)) !== JSON.stringify(value)) model.set(name, value);
      model.save_changes();
    },
    onChange: (act) => changed.push(act),
    onEnd: (act) => ended.push(act),
    ask: (kind, body, signal) => new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      const done = send(kind, body, (said) => (done(), resolve(said)), signal);
    }),
    async *lines(kind, body, signal) {
      const queue = [];
      let wake = () => {};
      const done = send(kind, body, (said) => (queue.push(said), wake()), signal);
      try {
        for (;;) {
          while (!queue.length) {
            signal?.throwIfAborted();
            await new Promise((resolve) => ((wake = resolve), signal?.addEventListener("abort", resolve)));
          }
          const said = queue.shift();
          if (said.last) return;
          yield said;
        }
      } finally {
        done();
      }
    },
    end: () => cleaning.forEach((act) => act()),
  };
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "dicoflex explorer";
  frame.allow = "clipboard-write";
  frame.className = "dicoflex-explorer";
  const size = () => (frame.style.cssText = `display:block;width:100%;border:0;border-radius:6px;height:${model.get("height")}px`);
  const own = bridge(model, el);
  size();
  model.on("change:height", size);
  frame.dicoflexNotebook = own;
  frame.srcdoc = page();
  el.append(frame);
  // Arrow keys and letters are commands of the notebook where they reach it.
  for (const name of ["keydown", "keyup", "keypress"]) el.addEventListener(name, (event) => event.stopPropagation());
  return () => (own.end(), model.off("change:height", size));
}

export default { render };
