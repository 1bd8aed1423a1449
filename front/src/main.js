// Starts the page: asks for the model, reads the link, and follows what is done.
import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.js";
import { Refusal, line, once } from "./ask.js";
import { fetchBodies } from "./body.js";
import { connect, keepInStep } from "./cell.js";
import { begin, calm } from "./history.js";
import { notebook } from "./host.js";
import { listen } from "./keys.js";
import { run } from "./loop.js";
import { find } from "./picker.js";
import { recall } from "./saved.js";
import { model, wish } from "./state.js";
import { announce } from "./status.js";
import { language, noun, preferred, speak, t } from "./texts.js";
import { wear } from "./theme.js";

const SLOW = 30000;
const PAUSE = 1000;

async function fetchModel() {
  for (;;) {
    try {
      return await once("model", {}, { timeout: SLOW });
    } catch (error) {
      if (error instanceof Refusal) throw error;
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
}

async function start() {
  wear();
  if (notebook) connect();
  effect(() => (document.documentElement.lang = language.value === "zz" ? "en" : language.value));
  const coming = fetchModel();
  await speak(preferred());
  render(<App />, document.getElementById("explorer"));
  model.value = await coming;
  noun.value = model.value.people.word;
  line.value = { state: "ok", error: null };
  begin();
  recall();
  find();
  if (notebook) keepInStep();
  run();
  announce();
  listen();
  effect(() => calm.value && fetchBodies());
  effect(() => (document.title = t("title", { name: model.value.name })));
  if (!notebook && wish.value.person === null && !wish.value.own) requestAnimationFrame(() => document.getElementById("picker")?.focus());
}

start();
