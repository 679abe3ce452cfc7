import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { GraphNode, NetworkTable } from "../api/types";
import { hrefOf } from "../app/router";
import { useStore } from "../app/store";
import { Badge, Empty, Figure, Panel, ProblemBox } from "../ui/basics";
import * as format from "../ui/format";
import { NetworkCharts } from "./NetworkCharts";
import { NetworkDiagram, recordsOf } from "./NetworkDiagram";
import { NodeDetails } from "./NodeDetails";
import { overview } from "./store";

const DAY_MS = 86_400_000;

export function OverviewPage(): JSX.Element {
  const { document, times, networks, problem } = useStore(overview);
  const [chosen, setChosen] = useState<string | null>(null);
  const [picked, setPicked] = useState<string | null>(null);
  if (!document) return problem ? <ProblemBox problem={problem} /> : <Empty>Asking the service…</Empty>;
  const node = document.nodes.find((each) => each.id === chosen || recordsOf(each.id) === chosen);
  const more: GraphNode | undefined = chosen?.startsWith("more:")
    ? { id: chosen, kind: "query", label: "more queries" }
    : undefined;
  const network = document.networks.find((each) => each.id === picked) ?? document.networks[0];
  return (
    <div class="stack">
      <Totals networks={document.networks} streams={document.nodes} />
      <div class={`split ${node || more ? "with-details" : ""}`}>
        <Panel title="What feeds what" class="network-panel">
          {document.nodes.length ? (
            <NetworkDiagram
              document={document}
              chosen={chosen}
              onChoose={(each) => setChosen(each.id === chosen ? null : each.id)}
            />
          ) : (
            <Empty>
              Nothing is declared yet. Declare a stream with <code>PUT /streams/IRI</code>, then{" "}
              <a href={hrefOf("queries")}>register a query</a>.
            </Empty>
          )}
        </Panel>
        {(node ?? more) && (
          <NodeDetails node={(node ?? more) as GraphNode} document={document} onClose={() => setChosen(null)} />
        )}
      </div>
      {network && (
        <Panel
          title={
            <>
              The last ten minutes <span class="kind">network {network.id}</span>
            </>
          }
          actions={
            document.networks.length > 1 && (
              <label class="inline">
                Network{" "}
                <select value={network.id} onChange={(event) => setPicked(event.currentTarget.value)}>
                  {document.networks.map((each) => (
                    <option key={each.id} value={each.id}>
                      {each.id}
                    </option>
                  ))}
                </select>
              </label>
            )
          }
        >
          <ProblemBox problem={network.error} />
          <NetworkCharts times={times} columns={networks[network.id] ?? {}} />
        </Panel>
      )}
    </div>
  );
}

function Totals(props: { networks: NetworkTable[]; streams: GraphNode[] }): JSX.Element {
  const sum = (of: (each: NetworkTable) => number | null) =>
    props.networks.reduce((total, each) => total + (of(each) ?? 0), 0);
  const most = (of: (each: NetworkTable) => number | null) => {
    const found = props.networks.map(of).filter((each): each is number => each != null);
    return found.length ? Math.max(...found) : null;
  };
  const throughs = props.networks
    .map((each) => each.metrics.through)
    .filter((each): each is number => each != null);
  const through = throughs.length ? Math.min(...throughs) : null;
  const lag = most((each) => each.metrics.lag_ms);
  const bad = sum((each) => each.metrics.dead_letters + each.metrics.late);
  const down = props.networks.filter((each) => each.state !== "running");
  return (
    <dl class="figures totals">
      <Figure name="Streams" value={format.count(props.streams.filter((each) => each.kind === "stream").length)} />
      <Figure name="Queries" value={format.count(sum((each) => each.queries))} />
      <Figure name="Statements in" value={format.rate(sum((each) => each.metrics.input_rate))} />
      <Figure name="Answers out" value={format.rate(sum((each) => each.metrics.answer_rate))} />
      <Figure
        name="Watermark"
        value={through == null ? "–" : format.clock(through).slice(0, 8)}
        title={through == null ? "" : `${format.instant(through)} UTC, event time`}
      />
      <Figure
        name="Lag"
        value={lag == null ? "–" : lag > DAY_MS ? "replay" : format.duration(lag)}
        title={lag == null ? "" : `the watermark is ${format.duration(lag)} behind now`}
      />
      <Figure name="Batch" value={format.millis(most((each) => each.metrics.batch_ms))} />
      <Figure name="State" value={format.bytes(sum((each) => each.metrics.state_bytes))} />
      <Figure
        name="Late and dead"
        value={<a href={hrefOf("letters")}>{format.count(bad)}</a>}
        tone={bad ? "warn" : ""}
      />
      {down.length > 0 && (
        <Figure
          name="Networks down"
          value={<Badge tone="bad">{down.map((each) => each.id).join(", ")}</Badge>}
          tone="bad"
        />
      )}
    </dl>
  );
}
