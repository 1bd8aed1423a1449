// Where the page lives: in a browser's tab, or in the frame of a notebook's cell, which brings what a tab would have.

/** What the notebook gave to its frame before the page started; nothing in a tab. */
export const notebook = globalThis.dicoflexNotebook ?? null;

class Store {
  #kept = new Map();
  getItem(name) {
    return this.#kept.get(name) ?? null;
  }
  setItem(name, value) {
    this.#kept.set(name, String(value));
  }
}

/** Steps of the frame's own: the notebook's tab keeps its address and its Back. */
class Steps {
  #list = [{ state: null, hash: "" }];
  #at = 0;
  get state() {
    return this.#list[this.#at].state;
  }
  get hash() {
    return this.#list[this.#at].hash;
  }
  pushState(state, _, hash) {
    this.#list = [...this.#list.slice(0, this.#at + 1), { state, hash }];
    this.#at += 1;
  }
  replaceState(state, _, hash) {
    this.#list[this.#at] = { state, hash };
  }
  go(by) {
    const to = this.#at + by;
    if (!by || !this.#list[to]) return;
    this.#at = to;
    queueMicrotask(() => dispatchEvent(new PopStateEvent("popstate", { state: this.state })));
  }
  back() {
    this.go(-1);
  }
  forward() {
    this.go(1);
  }
}

const steps = notebook && new Steps();
export const history = steps ?? globalThis.history;
export const location = steps ? { search: "", get hash() { return steps.hash; }, get href() { return steps.hash; } } : globalThis.location;
export const localStorage = notebook ? new Store() : globalThis.localStorage;
export const sessionStorage = notebook ? new Store() : globalThis.sessionStorage;
/** The words of another language. */
export const wordsOf = (name) => (notebook ? Promise.resolve(notebook.files[`${name}.json`] && JSON.parse(notebook.files[`${name}.json`])) : fetch(`${name}.json`).then((answer) => answer.json(), () => undefined));
