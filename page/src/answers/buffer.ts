/** The last answers of a query. Batches come many times a second; what is shown changes a few times. */
import { segment } from "../api/client";
import { type ServerEvent, type StreamState, subscribe } from "../api/events";
import type { Answer, Problem } from "../api/types";
import { Store } from "../app/store";

export const MOST_ANSWERS = 4000;
const SHOW_MS = 300;

export interface Answers {
  /** The oldest first. */
  list: Answer[];
  /** How many came since the page began to look. */
  count: number;
  state: StreamState;
  problem: Problem | null;
  /** What the service said about the subscription: a gap, an end, a drop. */
  notice: string | null;
  paused: boolean;
}

export class AnswerBuffer {
  readonly store = new Store<Answers>({
    list: [],
    count: 0,
    state: "connecting",
    problem: null,
    notice: null,
    paused: false,
  });
  private fresh: Answer[] = [];
  private came = 0;
  private readonly end: () => void;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(query: string) {
    this.end = subscribe(`/queries/${segment(query)}/answers?from=start`, {
      onEvents: (events) => this.take(events),
      onState: (state, problem) => this.store.set({ ...this.store.value, state, problem }),
    });
    this.timer = setInterval(() => this.show(), SHOW_MS);
  }

  private take(events: ServerEvent[]): void {
    for (const each of events) {
      if (each.event === "answer") {
        this.fresh.push({ ...(JSON.parse(each.data) as Answer), id: each.id });
        this.came += 1;
      } else if (each.event === "gap") {
        this.note("Answers are missing here: the service no longer keeps them.");
      } else if (each.event === "end" || each.event === "dropped") {
        const data = JSON.parse(each.data) as { reason?: string };
        this.note(data.reason ?? "There are no more answers.");
      }
    }
    if (this.fresh.length > MOST_ANSWERS) this.fresh = this.fresh.slice(-MOST_ANSWERS);
  }

  private note(notice: string): void {
    this.store.set({ ...this.store.value, notice });
  }

  private show(): void {
    const now = this.store.value;
    if (!this.fresh.length || now.paused || document.hidden) return;
    const list = [...now.list, ...this.fresh].slice(-MOST_ANSWERS);
    this.fresh = [];
    this.store.set({ ...now, list, count: this.came });
  }

  /** The last answers, also while what is shown is held. */
  newest(): Answer[] {
    return [...this.store.value.list, ...this.fresh].slice(-500);
  }

  pause(paused: boolean): void {
    this.store.set({ ...this.store.value, paused });
  }

  close(): void {
    this.end();
    clearInterval(this.timer);
  }
}
