// Everything that is asked goes through here: one request in flight, the newest waiting, older answers dropped.
import { signal } from "@preact/signals";
import { history, location, sessionStorage } from "./host.js";

const TIMEOUT = 4000;
const PAUSES = [1000, 2000, 5000, 10000];
const BAR_AFTER = 250;
const WORDS_AFTER = 1000;

/** A question that was understood and refused (4xx), or broke something (5xx). */
export class Refusal extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title ?? String(problem.status));
    Object.assign(this, { status: problem.status, feature: problem.feature ?? null, problem });
  }
}

/** No answer at all: the server is gone, or too slow. */
export class NoAnswer extends Error {}

// -- the transport, which can be exchanged --------------------------------------------------------------------

const TOKEN = "dicoflex.token";

/** The word that a server on another machine asks for comes in the link, and does not stay there. */
function token() {
  const found = /(?:^#|&)token=([^&]*)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
    history.replaceState(history.state, "", location.hash.replace(found[0], found[0][0] === "#" ? "#" : "") || "#");
  }
  return sessionStorage.getItem(TOKEN);
}
const headers = () => {
  const word = token();
  return { "Content-Type": "application/json", ...(word ? { Authorization: `Bearer ${word}` } : {}) };
};

async function post(kind, body, ended) {
  let answer;
  try {
    answer = await fetch(`api/${kind}`, { method: "POST", headers: headers(), body: JSON.stringify(body), signal: ended });
  } catch (error) {
    throw new NoAnswer(error.message);
  }
  if (answer.ok) return answer;
  if ([429, 502, 503, 504].includes(answer.status)) throw new NoAnswer(String(answer.status));
  throw new Refusal({ status: answer.status, ...(await answer.json().catch(() => ({}))) });
}

const read = (answer) => answer.json().catch((error) => Promise.reject(new NoAnswer(error.message)));

/** Asks a server of the same origin. */
export const http = {
  async ask(kind, body, ended) {
    return read(await post(kind, body, ended));
  },
  async *lines(kind, body, ended) {
    const reader = (await post(kind, body, ended)).body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const found = (rest + part.value).split("\n");
      rest = found.pop();
      for (const line of found) if (line.trim()) yield JSON.parse(line);
    }
    if (rest.trim()) yield JSON.parse(rest);
  },
};

let transport = http;
export const setTransport = (given) => {
  transport = given;
};

// -- asking once -----------------------------------------------------------------------------------------------

/** One answer, or an error; `ended` ends the wait early. */
export function once(kind, body, { ended, timeout = TIMEOUT } = {}) {
  const late = AbortSignal.timeout(timeout);
  return transport.ask(kind, body, ended ? AbortSignal.any([ended, late]) : late);
}

/** Answers line by line, for as long as they come. */
export const stream = (kind, body, ended) => transport.lines(kind, body, ended);

// -- asking again and again ------------------------------------------------------------------------------------

/** How the line is: "ok", "gone" (no answer; retrying), "ended" (there will be none) or "broken" (an error of the server's). */
export const line = signal({ state: "ok", error: null });
/** How long the question in flight has been waiting: "", "bar" or "slow". */
export const waiting = signal("");

/** Whether nothing is asked and nothing waits. */
export const idle = signal(true);

let seq = 0;
let busy = false;
let failures = 0;
let pause = null;
const newest = new Map();

/** Ask as soon as the line is free, instead of what waits under the same kind; `then(answer, body)`, `refused(error)`. */
export function ask(kind, body, then, { refused, unnumbered = false } = {}) {
  newest.delete(kind);
  newest.set(kind, { body, then, refused, unnumbered });
  if (!pause) next();
}

/** Don't wait for the next attempt. */
export function again() {
  clearTimeout(pause);
  pause = null;
  next();
}

async function next() {
  if (busy || !newest.size) return;
  const [[kind, job]] = newest;
  newest.delete(kind);
  busy = true;
  idle.value = false;
  const timers = [setTimeout(() => (waiting.value = "bar"), BAR_AFTER), setTimeout(() => (waiting.value = "slow"), WORDS_AFTER)];
  const sent = ++seq;
  try {
    const answer = await once(kind, job.unnumbered ? job.body : { ...job.body, seq: sent });
    failures = 0;
    line.value = { state: "ok", error: null };
    if (job.unnumbered || answer.seq === sent) job.then(answer, job.body);
  } catch (error) {
    failed(kind, job, error);
  }
  timers.forEach(clearTimeout);
  busy = false;
  if (!pause) next();
  if (busy) return;
  waiting.value = "";
  idle.value = !newest.size;
}

function failed(kind, job, error) {
  if (error instanceof NoAnswer || error.name === "TimeoutError" || error.name === "AbortError") {
    if (!newest.has(kind)) newest.set(kind, job);
    if (line.value.state === "ended") return;
    line.value = { state: "gone", error };
    pause = setTimeout(again, PAUSES[Math.min(failures++, PAUSES.length - 1)]);
    return;
  }
  line.value = error instanceof Refusal && error.status < 500 ? { state: "ok", error: null } : { state: "broken", error };
  job.refused?.(error);
}
