/** Triples by subject, as Turtle writes them. */
import type { JSX } from "preact";
import type { Term } from "../api/types";
import { fullTerm, parseLine, RDF_TYPE } from "../rdf/terms";
import { TermText } from "../ui/TermText";

export function Triples({ lines, label }: { lines: string[]; label: string }): JSX.Element {
  const subjects = new Map<string, { subject: Term; rows: [Term, Term, Term | undefined][] }>();
  for (const line of lines) {
    const [subject, predicate, object, graph] = parseLine(line);
    if (!subject || !predicate || !object) continue;
    const known = subjects.get(fullTerm(subject)) ?? { subject, rows: [] };
    known.rows.push([predicate, object, graph]);
    subjects.set(fullTerm(subject), known);
  }
  return (
    <div class="triples" role="region" aria-label={label} tabIndex={0}>
      {[...subjects.values()].map(({ subject, rows }) => (
        <div class="subject" key={fullTerm(subject)}>
          <span class={`term ${subject.type}`}>{subject.type === "uri" ? subject.value : fullTerm(subject)}</span>
          {graphsOf(rows).length === 1 && rows[0]?.[2] && (
            <span class="graph-name" title={fullTerm(rows[0][2])}>
              in a graph
            </span>
          )}
          <ul>
            {rows.map(([predicate, object, graph], place) => (
              <li key={place}>
                {predicate.value === RDF_TYPE ? <span class="term none">a</span> : <TermText term={predicate} />}{" "}
                <TermText term={object} />
                {graph && graphsOf(rows).length > 1 && (
                  <span class="graph-name" title={fullTerm(graph)}>
                    in a graph
                  </span>
                )}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}

function graphsOf(rows: [Term, Term, Term | undefined][]): string[] {
  return [...new Set(rows.map(([, , graph]) => (graph ? fullTerm(graph) : "")))];
}
