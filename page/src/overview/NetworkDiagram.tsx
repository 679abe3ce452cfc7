/** What feeds what: streams, mappings, templates that queries share, and queries. */
import type { JSX } from "preact";
import type { GraphNode, OverviewDocument } from "../api/types";
import { type Arrow, type Box, Diagram, fitted } from "../ui/Diagram";
import * as format from "../ui/format";
import { shortIri } from "../rdf/terms";

const WIDTH = 190;
const HEIGHT = 50;
/** How many queries of a template are drawn by themselves. */
const MOST_OF_TEMPLATE = 6;

interface Props {
  document: OverviewDocument;
  chosen: string | null;
  onChoose: (node: GraphNode) => void;
}

export function NetworkDiagram({ document, chosen, onChoose }: Props): JSX.Element {
  const { boxes, arrows } = drawn(document, onChoose);
  return (
    <Diagram
      label="What feeds what: streams, mappings, templates and queries"
      boxes={boxes}
      arrows={arrows}
      chosen={chosen}
      maxHeight={520}
    />
  );
}

function drawn(document: OverviewDocument, onChoose: (node: GraphNode) => void): { boxes: Box[]; arrows: Arrow[] } {
  const boxes: Box[] = [];
  const arrows: Arrow[] = [];
  const queriesOf = new Map<string, GraphNode[]>();
  for (const node of document.nodes) {
    if (node.kind !== "query") continue;
    const template = `template:${node.network}:${node.template}`;
    queriesOf.set(template, [...(queriesOf.get(template) ?? []), node]);
  }
  // A mapping may make a stream of the same IRI as its records: they are drawn apart.
  const made = new Set(document.edges.filter((each) => each.from.startsWith("mapping:")).map((each) => each.to));
  const read = new Set(document.edges.filter((each) => each.to.startsWith("mapping:")).map((each) => each.from));
  for (const node of document.nodes) {
    if (node.kind === "query") continue;
    const isBoth = made.has(node.id) && read.has(node.id);
    if (isBoth) boxes.push(box({ ...node, id: recordsOf(node.id) }, onChoose, "records"));
    boxes.push(box(isBoth ? { ...node, source: "mapping" } : node, onChoose));
  }
  const rates = document.edges.map((each) => each.rate ?? 0);
  const most = Math.max(1, ...rates);
  const rateTo = new Map(document.edges.map((each) => [each.to, each.rate]));
  for (const edge of document.edges) {
    if (edge.to.startsWith("query:")) continue;
    const from = edge.to.startsWith("mapping:") && made.has(edge.from) ? recordsOf(edge.from) : edge.from;
    arrows.push(arrow(from, edge.to, edge.rate, most, edge.shared));
  }
  for (const [template, queries] of queriesOf) {
    const order = [...queries].sort(
      (a, b) =>
        Number(b.state === "stopped") - Number(a.state === "stopped") ||
        (a.label < b.label ? -1 : 1),
    );
    const alone = order.length > MOST_OF_TEMPLATE ? order.slice(0, MOST_OF_TEMPLATE - 1) : order;
    const others = order.slice(alone.length);
    for (const query of alone) {
      boxes.push(box(query, onChoose));
      arrows.push(arrow(template, query.id, query.rate ?? rateTo.get(query.id) ?? null, most));
    }
    const members = document.nodes.find((each) => each.id === template)?.members ?? 0;
    const more = Math.max(others.length, members - alone.length);
    if (others.length && more) {
      const rate = others.reduce((sum, each) => sum + (each.rate ?? 0), 0);
      const node: GraphNode = {
        id: `more:${template}`,
        kind: "query",
        label: `${format.count(more)} more queries`,
        rate,
        state: "running",
      };
      boxes.push(box(node, onChoose));
      arrows.push(arrow(template, node.id, rate, most));
    }
  }
  return { boxes, arrows };
}

/** The records that become the statements of a stream of the same IRI. */
export function recordsOf(stream: string): string {
  return `records:${stream}`;
}

function arrow(from: string, to: string, rate: number | null, most: number, shared = false): Arrow {
  const value = rate ?? 0;
  return {
    from,
    to,
    label: rate == null ? undefined : format.rate(rate),
    kind: shared ? "shared" : "",
    title: shared ? "Matched once for several templates" : undefined,
    weight: value > 0 ? Math.log1p(value) / Math.log1p(most) : 0,
    moving: value > 0,
  };
}

function box(node: GraphNode, onChoose: (node: GraphNode) => void, what = ""): Box {
  const [title, words] = wordsOf(node);
  const second = what ? `${what}, ${words}` : words;
  const stopped = node.kind === "query" && node.state !== "running" ? ` ${node.state}` : "";
  return {
    id: node.id,
    kind: `${node.kind}${stopped}`,
    width: WIDTH,
    height: HEIGHT,
    label: `${node.kind} ${node.label}: ${second}`,
    onChoose: () => onChoose(node),
    body: (
      <>
        <title>{node.label}</title>
        <rect class="edge" width="4" height={HEIGHT - 14} x="6" y="7" rx="2" />
        <text x="18" y="21" class="box-title">
          {fitted(title, WIDTH - 26, 13)}
        </text>
        <text x="18" y="38" class="box-second">
          {fitted(second, WIDTH - 26, 11)}
        </text>
      </>
    ),
  };
}

function wordsOf(node: GraphNode): [string, string] {
  switch (node.kind) {
    case "stream":
      return [
        shortIri(node.label),
        `${node.source === "mapping" ? "made by a mapping" : node.source} · ${format.rate(node.rate)}`,
      ];
    case "mapping":
      return [node.label, "mapping"];
    case "template": {
      const members = node.members ?? 0;
      const time = node.batch_ms == null ? "" : ` · ${format.millis(node.batch_ms)}`;
      return [node.label, `${members > 1 ? `shared by ${members} queries` : "one query"}${time}`];
    }
    default: {
      const state = node.state && node.state !== "running" ? `${node.state} · ` : "";
      return [node.label, `${state}${format.rate(node.rate)}`];
    }
  }
}
