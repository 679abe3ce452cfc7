/** How everything is, now and over the last ten minutes; one subscription for the whole page. */
import { getJson } from "../api/client";
import { type StreamState, subscribe } from "../api/events";
import type { Column, OverviewDocument, Problem } from "../api/types";
import { Store } from "../app/store";

export interface OverviewState {
  document: OverviewDocument | null;
  times: number[];
  networks: Record<string, Record<string, Column>>;
  state: StreamState;
  problem: Problem | null;
}

const MOST_SAMPLES = 300;

export const overview = new Store<OverviewState>({
  document: null,
  times: [],
  networks: {},
  state: "connecting",
  problem: null,
});

let users = 0;
let end: (() => void) | null = null;

/** Watch the service as long as somebody wants to know. */
export function watchOverview(): () => void {
  users += 1;
  end ??= subscribe("/overview/events", {
    onOpen: () => void load(),
    onEvents: (events) => {
      for (const each of events) {
        if (each.event === "overview") append(JSON.parse(each.data) as OverviewDocument);
      }
    },
    onState: (state, problem) => overview.set({ ...overview.value, state, problem }),
  });
  return () => {
    users -= 1;
    if (users) return;
    end?.();
    end = null;
  };
}

async function load(): Promise<void> {
  const document = await getJson<OverviewDocument>("/overview").catch(() => null);
  if (!document) return;
  overview.set({
    ...overview.value,
    document,
    times: document.history?.t ?? [],
    networks: document.history?.networks ?? {},
  });
}

function append(document: OverviewDocument): void {
  const { times, networks } = overview.value;
  const sample = document.sample;
  const last = times[times.length - 1] ?? 0;
  if (!sample || sample.t <= last) {
    overview.set({ ...overview.value, document });
    return;
  }
  const known = times.length;
  const found: Record<string, Record<string, Column>> = {};
  for (const name of new Set([...Object.keys(networks), ...Object.keys(sample.networks)])) {
    const before = networks[name] ?? {};
    const row = sample.networks[name] ?? {};
    const columns: Record<string, Column> = {};
    for (const key of new Set([...Object.keys(before), ...Object.keys(row)])) {
      const column = before[key] ?? new Array<number | null>(known).fill(null);
      columns[key] = [...column.slice(-(MOST_SAMPLES - 1)), row[key] ?? null];
    }
    // A network that ended long ago is forgotten.
    if (Object.values(columns).some((column) => column.some((value) => value != null)))
      found[name] = columns;
  }
  overview.set({
    ...overview.value,
    document,
    times: [...times.slice(-(MOST_SAMPLES - 1)), sample.t],
    networks: found,
  });
}
