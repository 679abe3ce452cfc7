/** A term, short; its whole spelling is in the title. Terms come from streams: they are text only. */
import type { JSX } from "preact";
import type { Term } from "../api/types";
import { fullTerm, numberOf, shortTerm } from "../rdf/terms";

export function TermText({ term }: { term: Term | undefined }): JSX.Element {
  if (!term) return <span class="term none">–</span>;
  const kind = numberOf(term) !== null ? "number" : term.type;
  return (
    <span class={`term ${kind}`} title={fullTerm(term)}>
      {shortTerm(term)}
      {term["xml:lang"] && <sup>{term["xml:lang"]}</sup>}
    </span>
  );
}
