/** What the windows of a query hold, now and since this view was opened. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { getJson, segment } from "../api/client";
import type { Column, QueryInfo, WindowContent, WindowsResult } from "../api/types";
import { useAsked } from "../app/hooks";
import { go, hrefOf } from "../app/router";
import { parseLine, shortIri } from "../rdf/terms";
import { Badge, Empty, Figure, Panel, ProblemBox } from "../ui/basics";
import { Chart, WHOLE } from "../ui/Chart";
import * as format from "../ui/format";
import { TermText } from "../ui/TermText";

const EVERY_MS = 2000;
const MOST_SAMPLES = 300;
const MOST_STATEMENTS = 60;

interface Sample {
  now: number;
  counts: Record<string, number>;
}

export function WindowsPage({ name }: { name: string | null }): JSX.Element {
  const list = useAsked((signal) => getJson<{ queries: QueryInfo[] }>("/queries?limit=2000", signal), []);
  const queries = list.value?.queries ?? [];
  const chosen = name ?? queries[0]?.name ?? null;
  return (
    <div class="stack">
      <ProblemBox problem={list.problem} />
      {list.value && !queries.length && (
        <Empty>
          There are no queries. <a href={hrefOf("queries")}>Register one.</a>
        </Empty>
      )}
      {queries.length > 0 && (
        <div class="row">
          <label class="inline">
            Query{" "}
            <select value={chosen ?? ""} onChange={(event) => go("windows", event.currentTarget.value)}>
              {queries.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          </label>
          {chosen && (
            <a class="button" href={hrefOf("queries", chosen)}>
              Open the query
            </a>
          )}
        </div>
      )}
      {chosen && <WindowsOf key={chosen} query={chosen} />}
    </div>
  );
}

function WindowsOf({ query }: { query: string }): JSX.Element {
  const found = useAsked(
    (signal) => getJson<WindowsResult>(`/queries/${segment(query)}/windows`, signal),
    [query],
    { everyMs: EVERY_MS },
  );
  const [samples, setSamples] = useState<Sample[]>([]);
  const result = found.value;
  useEffect(() => {
    if (!result || result.at == null) return;
    const counts = Object.fromEntries(result.windows.map((each) => [each.name, each.count]));
    setSamples((known) => [...known.slice(-(MOST_SAMPLES - 1)), { now: Date.now(), counts }]);
  }, [result]);
  const times = useMemo(() => samples.map((each) => each.now), [samples]);
  const series = useMemo(
    () =>
      (result?.windows ?? []).map((window) => ({
        name: nameOf(window),
        values: samples.map((each) => each.counts[window.name] ?? null) as Column,
      })),
    [samples],
  );
  if (found.problem) return <ProblemBox problem={found.problem} />;
  if (!result) return <Empty>Asking the service…</Empty>;
  return (
    <>
      {!result.complete && (
        <p class="notice">
          The service looks into the streams since you asked. The windows are shown as a whole once their whole length
          has passed.
        </p>
      )}
      <Panel title="Elements held, over time">
        <Chart title="Elements" times={times} series={series} format={format.count} height={170} steps={WHOLE} />
      </Panel>
      {result.windows.map((each) => (
        <WindowPanel key={each.name} window={each} at={result.at} />
      ))}
    </>
  );
}

function nameOf(window: WindowContent): string {
  // Windows without a name of their own have a number.
  const short = shortIri(window.name);
  return /^\d+$/.test(short) ? `window ${short}` : short;
}

function WindowPanel({ window, at }: { window: WindowContent; at: number | null }): JSX.Element {
  return (
    <Panel
      title={
        <>
          {nameOf(window)} <span class="kind">{window.scope}</span>
        </>
      }
      label={`Window ${nameOf(window)}`}
    >
      <dl class="figures">
        <Figure name="Stream" value={<span title={window.stream}>{shortIri(window.stream)}</span>} />
        <Figure name="Holds now" value={format.plural(window.count, "statement")} />
        <Figure name="Instant, UTC" value={at == null ? "–" : format.clock(at)} title={format.instant(at)} />
      </dl>
      {window.newest.length > 0 ? (
        <>
          <Timeline window={window} at={at ?? 0} />
          <ol class="statements" aria-label={`The newest statements of ${nameOf(window)}`}>
            {window.newest.slice(0, MOST_STATEMENTS).map((each, place) => (
              <li key={place}>
                <time>{format.clock(each.t)}</time>
                {parseLine(each.statement).map((term, number) => (
                  <TermText key={number} term={term} />
                ))}
              </li>
            ))}
          </ol>
          {window.count > MOST_STATEMENTS && (
            <p class="hint">and {format.count(window.count - MOST_STATEMENTS)} older ones</p>
          )}
        </>
      ) : (
        <Empty>
          <Badge>empty</Badge>
        </Empty>
      )}
    </Panel>
  );
}

const WIDTH = 800;
const HEIGHT = 74;
const SIDE = 10;

/** When the newest elements entered: one mark for each, older at the left. */
function Timeline({ window, at }: { window: WindowContent; at: number }): JSX.Element {
  const times = window.newest.map((each) => each.t);
  const begin = Math.min(...times);
  const span = Math.max(1, at - begin);
  const perTime = new Map<number, number>();
  for (const t of times) perTime.set(t, (perTime.get(t) ?? 0) + 1);
  const most = Math.max(...perTime.values());
  const x = (t: number) => SIDE + ((t - begin) / span) * (WIDTH - 2 * SIDE);
  const words = `${times.length} statements between ${format.clock(begin)} and ${format.clock(at)}`;
  return (
    <svg class="timeline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words}>
      <path class="axis" d={`M${SIDE},${HEIGHT - 20}H${WIDTH - SIDE}`} />
      {[...perTime].map(([t, number]) => (
        <path key={t} class="mark" d={`M${x(t)},${HEIGHT - 20}v${-8 - (30 * number) / most}`}>
          <title>
            {format.clock(t)}: {number}
          </title>
        </path>
      ))}
      <text x={SIDE} y={HEIGHT - 5}>
        {format.clock(begin)}
      </text>
      <text x={WIDTH - SIDE} y={HEIGHT - 5} text-anchor="end">
        {format.clock(at)}
      </text>
    </svg>
  );
}
