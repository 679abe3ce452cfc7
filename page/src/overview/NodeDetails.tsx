/** What is known about a chosen node. */
import type { JSX } from "preact";
import type { GraphNode, OverviewDocument } from "../api/types";
import { hrefOf } from "../app/router";
import { Button, Figure, Panel, StateBadge } from "../ui/basics";
import * as format from "../ui/format";
import { StreamLook } from "./StreamLook";

interface Props {
  node: GraphNode;
  document: OverviewDocument;
  onClose: () => void;
}

export function NodeDetails({ node, document, onClose }: Props): JSX.Element {
  return (
    <Panel
      class="details"
      title={
        <>
          <span class="kind">{node.kind}</span> <span class="break">{node.label}</span>
        </>
      }
      label={`Details of ${node.kind} ${node.label}`}
      actions={<Button icon="close" label="Close the details" kind="quiet" onClick={onClose} />}
    >
      {node.kind === "query" && <QueryFacts node={node} />}
      {node.kind === "template" && <TemplateFacts node={node} document={document} />}
      {node.kind === "stream" && <StreamFacts node={node} />}
      {node.kind === "mapping" && (
        <p>
          <a class="button" href={hrefOf("mappings", node.label)}>
            Open the mapping
          </a>
        </p>
      )}
    </Panel>
  );
}

function QueryFacts({ node }: { node: GraphNode }): JSX.Element {
  if (node.id.startsWith("more:")) {
    return (
      <p>
        <a class="button" href={hrefOf("queries")}>
          Show all queries
        </a>
      </p>
    );
  }
  return (
    <>
      <dl class="figures">
        <Figure name="State" value={<StateBadge state={node.state ?? "running"} />} />
        <Figure name="Answers" value={format.count(node.answers)} />
        <Figure name="Rate" value={format.rate(node.rate)} />
        <Figure name="Share of a batch" value={format.millis(node.batch_ms)} />
      </dl>
      {node.reason && <p class="hint">{node.reason}</p>}
      <p>
        <a class="button main" href={hrefOf("queries", node.label)}>
          Open the query
        </a>{" "}
        <a class="button" href={hrefOf("windows", node.label)}>
          Its windows
        </a>
      </p>
    </>
  );
}

function TemplateFacts({ node, document }: { node: GraphNode; document: OverviewDocument }): JSX.Element {
  const queries = document.nodes.filter(
    (each) =>
      each.kind === "query" && each.network === node.network && `template ${each.template}` === node.label,
  );
  return (
    <>
      <p class="hint">
        Queries that differ only in constants and lengths of windows run once, as one template.
      </p>
      <dl class="figures">
        <Figure name="Queries" value={format.count(node.members)} />
        <Figure name="Time in a batch" value={format.millis(node.batch_ms)} />
        <Figure name="Divided over shards by" value={node.key ?? "one shard"} />
      </dl>
      {node.reason && <p class="hint">{node.reason}</p>}
      <h3>Matches</h3>
      <ul class="bare">
        {(node.patterns ?? []).map((each) => (
          <li key={each}>
            <code class="break">{each}</code>
          </li>
        ))}
      </ul>
      <h3>Queries</h3>
      <ul class="bare links">
        {queries.slice(0, 30).map((each) => (
          <li key={each.id}>
            <a href={hrefOf("queries", each.label)}>{each.label}</a>
          </li>
        ))}
      </ul>
    </>
  );
}

function StreamFacts({ node }: { node: GraphNode }): JSX.Element {
  return (
    <>
      <dl class="figures">
        <Figure name="Source" value={node.source} />
        <Figure name="Rate" value={format.rate(node.rate)} />
        <Figure name="Read by" value={node.networks?.join(", ") || "nobody"} />
      </dl>
      <StreamLook key={node.label} iri={node.label} />
    </>
  );
}
