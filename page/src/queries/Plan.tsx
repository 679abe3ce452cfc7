/** How a query runs: a drawing of its operators, and the plan in words. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getJson, getText, segment } from "../api/client";
import type { CheckResult } from "../api/types";
import { useAsked } from "../app/hooks";
import { shortIri } from "../rdf/terms";
import { Empty, ProblemBox, Tabs } from "../ui/basics";
import { type Arrow, type Box, Diagram, fitted } from "../ui/Diagram";
import { duration } from "../ui/format";
import { algebraOf, type AlgebraOfQuery, type Operator } from "./sexpr";

type Look = "drawing" | "words" | "sharing";
const WIDTH = 280;
const MOST_LINES = 6;

export function Plan({ check, name }: { check: CheckResult | null; name: string | null }): JSX.Element {
  const [look, setLook] = useState<Look>("drawing");
  const algebra = check?.explanation ? algebraOf(check.explanation.optimized) : null;
  const tabs = [
    { id: "drawing" as Look, label: "Drawing" },
    { id: "words" as Look, label: "In words" },
    ...(name ? [{ id: "sharing" as Look, label: "Sharing" }] : []),
  ];
  if (!algebra) return <Empty>The plan is shown once the query can be read.</Empty>;
  return (
    <>
      <Tabs label="Form of the plan" tabs={tabs} chosen={look} onChoose={setLook} />
      {look === "drawing" && <Drawing algebra={algebra} />}
      {look === "words" && (
        <pre class="text" tabIndex={0}>
          {check?.plan ?? check?.plan_problem?.message ?? "There is no plan."}
        </pre>
      )}
      {look === "sharing" && name && <Sharing name={name} />}
    </>
  );
}

function Sharing({ name }: { name: string }): JSX.Element {
  const path = `/queries/${segment(name)}/explain`;
  const text = useAsked((signal) => getJson<{ text: string }>(path, signal), [path]);
  const drawn = useAsked((signal) => getText(`${path}?as=svg`, signal), [path]);
  const [source, setSource] = useState<string | null>(null);
  useEffect(() => {
    if (!drawn.value) return;
    // As an image, it can run nothing and ask for nothing.
    const url = URL.createObjectURL(new Blob([drawn.value], { type: "image/svg+xml" }));
    setSource(url);
    return () => URL.revokeObjectURL(url);
  }, [drawn.value]);
  return (
    <>
      <ProblemBox problem={text.problem ?? drawn.problem} />
      {source && <img class="network-drawing" src={source} alt={`The network of the query ${name}: what shares what`} />}
      {text.value && (
        <pre class="text" tabIndex={0}>
          {text.value.text}
        </pre>
      )}
    </>
  );
}

function Drawing({ algebra }: { algebra: AlgebraOfQuery }): JSX.Element {
  const boxes: Box[] = [];
  const arrows: Arrow[] = [];
  let next = 0;

  const add = (kind: string, title: string, lines: string[]): string => {
    const id = `${kind}-${(next += 1)}`;
    const shown = lines.length > MOST_LINES ? [...lines.slice(0, MOST_LINES - 1), `and ${lines.length - MOST_LINES + 1} more`] : lines;
    boxes.push({
      id,
      kind,
      width: WIDTH,
      height: 30 + shown.length * 16,
      label: `${title}: ${lines.join("; ")}`,
      body: (
        <>
          <title>{[title, ...lines].join("\n")}</title>
          <rect class="edge" width="4" height={16 + shown.length * 16} x="6" y="7" rx="2" />
          <text x="18" y="20" class="box-title">
            {title}
          </text>
          {shown.map((line, place) => (
            <text key={place} x="18" y={38 + place * 16} class="box-second">
              {fitted(line, WIDTH - 26, 11)}
            </text>
          ))}
        </>
      ),
    });
    return id;
  };

  const streams = new Map<string, string>();
  const walk = (operator: Operator): string => {
    const kind = operator.window ? "template" : operator.name === "bgp" ? "mapping" : "query";
    // Most windows match one pattern; then one box says both.
    const only = operator.window && operator.inputs.length === 1 && operator.inputs[0]?.name === "bgp" ? operator.inputs[0] : null;
    const lines = [...linesOf(operator, algebra), ...(only ? only.triples.map(readable) : [])];
    const own = add(kind, titleOf(operator), lines);
    if (operator.window) {
      const window = algebra.windows.find((each) => each.name === operator.window);
      if (window) {
        const stream = streams.get(window.stream) ?? add("stream", bare(window.stream), ["stream"]);
        streams.set(window.stream, stream);
        arrows.push({ from: stream, to: own });
      }
    }
    for (const each of only ? [] : operator.inputs) arrows.push({ from: walk(each), to: own });
    return own;
  };

  const out = add("stream", "answers", [algebra.output, algebra.report].filter(Boolean));
  if (algebra.pattern) arrows.push({ from: walk(algebra.pattern), to: out });
  return (
    <Diagram
      label="The operators of the query, from streams to answers"
      boxes={boxes}
      arrows={arrows}
      direction="TB"
      maxHeight={720}
    />
  );
}

const TITLES: Record<string, string> = {
  bgp: "match",
  project: "project",
  leftjoin: "optional",
  "left-join": "optional",
  extend: "compute",
  group: "group by",
  window: "window",
};

function titleOf(operator: Operator): string {
  return TITLES[operator.name] ?? operator.name;
}

function linesOf(operator: Operator, algebra: AlgebraOfQuery): string[] {
  if (operator.window) {
    const window = algebra.windows.find((each) => each.name === operator.window);
    return [bare(operator.window), spoken(window?.scope ?? "")].filter(Boolean);
  }
  if (operator.triples.length) return operator.triples.map(readable);
  return operator.words ? [readable(operator.words)] : [];
}

/** The scope of a window with durations as people read them. */
function spoken(scope: string): string {
  return scope.replace(/(\d+)ms/g, (_all, ms: string) => duration(Number(ms)));
}

function bare(iri: string): string {
  return shortIri(iri.replace(/^<|>$/g, ""));
}

function readable(text: string): string {
  return text.replace(/<([^>\s]*)>/g, (_all, iri: string) => shortIri(iri)).replace(/"([^"]*)"\^\^\S+/g, "$1");
}
