/** The last dead letters, and new ones as they come. */
import { getJson } from "../api/client";
import { subscribe } from "../api/events";
import type { Letter } from "../api/types";
import { Store } from "../app/store";

export const MOST_LETTERS = 500;

export interface Letters {
  list: Letter[];
  total: number;
  known: boolean;
}

export function watchLetters(store: Store<Letters>): () => void {
  let fresh: Letter[] = [];
  const add = (more: Letter[], total: number) => {
    const known = new Map(store.value.list.map((each) => [each.seq, each]));
    for (const each of more) known.set(each.seq, each);
    const list = [...known.values()].sort((a, b) => b.seq - a.seq).slice(0, MOST_LETTERS);
    store.set({ list, total: Math.max(total, store.value.total, list[0]?.seq ?? 0), known: true });
  };
  const end = subscribe("/deadletters/events", {
    onOpen: () =>
      void getJson<{ letters: Letter[]; total: number }>(`/deadletters?limit=${MOST_LETTERS}`).then(
        (found) => add(found.letters, found.total),
        () => undefined,
      ),
    onEvents: (events) => {
      for (const each of events) if (each.event === "letter") fresh.push(JSON.parse(each.data) as Letter);
      fresh = fresh.slice(-MOST_LETTERS);
    },
  });
  const timer = setInterval(() => {
    if (!fresh.length) return;
    const more = fresh;
    fresh = [];
    add(more, 0);
  }, 500);
  return () => {
    end();
    clearInterval(timer);
  };
}
