/** The newest triples of a CONSTRUCT as a graph: resources with their literals, and arrows. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Answer } from "../api/types";
import { fullTerm, parseLine, RDF_TYPE, shortIri, shortTerm } from "../rdf/terms";
import { Empty } from "../ui/basics";
import { type Arrow, type Box, Diagram, fitted } from "../ui/Diagram";
import * as format from "../ui/format";

const MOST_TRIPLES = 60;
const ENOUGH_TRIPLES = 6;
const MOST_ROWS = 6;
const WIDTH = 200;

interface Resource {
  id: string;
  name: string;
  types: string[];
  rows: string[];
}

export function AnswerGraph({ answers }: { answers: Answer[] }): JSX.Element {
  const { lines, t } = useMemo(() => newest(answers), [answers]);
  const { boxes, arrows } = useMemo(() => drawn(lines), [lines.join("\n")]);
  if (!boxes.length) return <Empty>No triples yet.</Empty>;
  return (
    <>
      <p class="hint">
        {format.plural(lines.length, "triple")}, up to {format.instant(t)} UTC
      </p>
      <Diagram label="The triples as a graph" boxes={boxes} arrows={arrows} maxHeight={560} />
    </>
  );
}

function newest(answers: Answer[]): { lines: string[]; t: number } {
  const found = new Set<string>();
  let t = -Infinity;
  for (let n = answers.length - 1; n >= 0 && found.size < MOST_TRIPLES; n -= 1) {
    const each = answers[n];
    if (!each || each.sign === "-") continue;
    // A report may say everything anew; single triples only make sense together.
    if (each.t < t && found.size >= ENOUGH_TRIPLES) break;
    t = Math.max(t, each.t);
    for (const line of each.graph ?? []) if (found.size < MOST_TRIPLES) found.add(line);
  }
  return { lines: [...found].sort(), t };
}

function drawn(lines: string[]): { boxes: Box[]; arrows: Arrow[] } {
  const resources = new Map<string, Resource>();
  const arrows: Arrow[] = [];
  const resource = (id: string, name: string): Resource => {
    const known = resources.get(id) ?? { id, name, types: [], rows: [] };
    resources.set(id, known);
    return known;
  };
  for (const line of lines) {
    const [subject, predicate, object] = parseLine(line);
    if (!subject || !predicate || !object) continue;
    const own = resource(fullTerm(subject), shortTerm(subject));
    if (predicate.value === RDF_TYPE) own.types.push(shortTerm(object));
    else if (object.type === "literal") own.rows.push(`${shortIri(predicate.value)}: ${shortTerm(object)}`);
    else {
      const other = resource(fullTerm(object), shortTerm(object));
      arrows.push({ from: own.id, to: other.id, label: shortIri(predicate.value), title: predicate.value });
    }
  }
  return { boxes: [...resources.values()].map(box), arrows };
}

function box(each: Resource): Box {
  const extra = each.rows.length > MOST_ROWS ? [`and ${each.rows.length - MOST_ROWS} more`] : [];
  const rows = [...(each.types.length ? [each.types.join(", ")] : []), ...each.rows.slice(0, MOST_ROWS), ...extra];
  const height = 30 + rows.length * 16;
  return {
    id: each.id,
    kind: "stream",
    width: WIDTH,
    height,
    label: [each.name, ...rows].join("; "),
    body: (
      <>
        <title>{[each.id, ...each.types, ...each.rows].join("\n")}</title>
        <rect class="edge" width="4" height={height - 14} x="6" y="7" rx="2" />
        <text x="18" y="20" class="box-title">
          {fitted(each.name, WIDTH - 26, 13)}
        </text>
        {rows.map((row, place) => (
          <text key={place} x="18" y={38 + place * 16} class="box-second">
            {fitted(row, WIDTH - 26, 11)}
          </text>
        ))}
      </>
    ),
  };
}
