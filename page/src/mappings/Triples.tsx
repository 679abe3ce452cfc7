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
          <TermText term={subject} />
          <ul>
            {rows.map(([predicate, object, graph], place) => (
              <li key={place}>
                {predicate.value === RDF_TYPE ? <span class="term none">a</span> : <TermText term={predicate} />}{" "}
                <TermText term={object} />
                {graph && (
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
