/** What the editor offers while somebody types. */
import type { Completion } from "@codemirror/autocomplete";
import { overview } from "../overview/store";
import { FUNCTIONS, KEYWORDS, STREAM_KEYWORDS } from "../ui/languages";

const FIXED: Completion[] = [
  ...[...STREAM_KEYWORDS, ...KEYWORDS].map((label) => ({ label, type: "keyword" })),
  ...[...FUNCTIONS].map((label) => ({ label, type: "function", apply: `${label}(` })),
  ...[
    ["rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"],
    ["rdfs", "http://www.w3.org/2000/01/rdf-schema#"],
    ["xsd", "http://www.w3.org/2001/XMLSchema#"],
    ["sosa", "http://www.w3.org/ns/sosa/"],
    ["geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"],
  ].map(([prefix, iri]) => ({ label: `PREFIX ${prefix}: <${iri}>`, type: "namespace" })),
];

export function completionsOfQuery(): Completion[] {
  const streams = (overview.value.document?.nodes ?? [])
    .filter((each) => each.kind === "stream")
    .map((each) => ({ label: `<${each.label}>`, type: "class", detail: "stream", boost: 2 }));
  return [...streams, ...FIXED];
}
