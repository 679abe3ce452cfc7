/**
 * Server-sent events over fetch: EventSource cannot send a token. A broken connection is made again
 * after a while and resumes after the last event; while the page is hidden there is none.
 */
import { asProblem, headers, problemOf } from "./client";
import type { Problem } from "./types";

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

interface Handlers {
  onEvents: (events: ServerEvent[]) => void;
  /** Called before each connection; what it returns, if anything, is where to resume. */
  onOpen?: () => void;
  onState?: (state: StreamState, problem: Problem | null) => void;
}

export type StreamState = "connecting" | "open" | "waiting" | "ended";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
// Server-sent events of one bundle are shown together; larger parts are garbage or an attack.
const MOST_PENDING = 8 * 1024 * 1024;

/** Subscribe; returns what ends the subscription. */
export function subscribe(path: string, handlers: Handlers): () => void {
  let closed = false;
  let lastId = "";
  let wait = FIRST_WAIT_MS;
  let abort: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const state = (now: StreamState, problem: Problem | null = null) =>
    handlers.onState?.(now, problem);

  async function run(): Promise<void> {
    if (closed || document.hidden) return;
    const own = new AbortController();
    abort = own;
    state("connecting");
    let ended = false;
    let problem: Problem | null = null;
    try {
      const more: Record<string, string> = { accept: "text/event-stream" };
      if (lastId) more["last-event-id"] = lastId;
      const response = await fetch(path, { headers: headers(more), signal: own.signal });
      if (!response.ok || !response.body) throw await problemOf(response);
      state("open");
      handlers.onOpen?.();
      wait = FIRST_WAIT_MS;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let pending = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        pending += value;
        if (pending.length > MOST_PENDING) throw new Error("an event is too large");
        const end = pending.lastIndexOf("\n\n");
        if (end < 0) continue;
        const events = parseEvents(pending.slice(0, end));
        pending = pending.slice(end + 2);
        for (const each of events) if (each.id) lastId = each.id;
        ended ||= events.some((each) => each.event === "end");
        if (events.length) handlers.onEvents(events);
      }
    } catch (error) {
      if (own.signal.aborted) return;
      problem = asProblem(error);
      // What the client did wrong, it would do wrong again.
      ended = problem.status >= 400 && problem.status < 500 && problem.status !== 429;
    }
    if (closed) return;
    if (ended) {
      state("ended", problem);
      return;
    }
    state("waiting", problem);
    timer = setTimeout(() => void run(), wait);
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }

  function onVisibility(): void {
    if (document.hidden) {
      abort?.abort();
      clearTimeout(timer);
      state("waiting");
    } else {
      void run();
    }
  }

  document.addEventListener("visibilitychange", onVisibility);
  void run();
  return () => {
    closed = true;
    document.removeEventListener("visibilitychange", onVisibility);
    clearTimeout(timer);
    abort?.abort();
  };
}

export function parseEvents(text: string): ServerEvent[] {
  const found: ServerEvent[] = [];
  for (const block of text.split("\n\n")) {
    const event: ServerEvent = { id: "", event: "message", data: "" };
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) continue;
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "id") event.id = value;
      else if (name === "event") event.event = value;
      else if (name === "data") data.push(value);
    }
    if (!data.length && !event.id) continue;
    event.data = data.join("\n");
    found.push(event);
  }
  return found;
}
