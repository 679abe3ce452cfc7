/** Terms of RDF: reading N-Triples, and writing terms short enough to read. */
import type { Term } from "../api/types";

export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
export const WKT = "http://www.opengis.net/ont/geosparql#wktLiteral";
export const GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#";

const PREFIXES: [string, string][] = [
  ["rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"],
  ["rdfs", "http://www.w3.org/2000/01/rdf-schema#"],
  ["owl", "http://www.w3.org/2002/07/owl#"],
  ["xsd", XSD],
  ["sosa", "http://www.w3.org/ns/sosa/"],
  ["ssn", "http://www.w3.org/ns/ssn/"],
  ["prov", "http://www.w3.org/ns/prov#"],
  ["geo", GEO],
  ["gsp", "http://www.opengis.net/ont/geosparql#"],
  ["foaf", "http://xmlns.com/foaf/0.1/"],
  ["schema", "http://schema.org/"],
  ["dct", "http://purl.org/dc/terms/"],
  ["qudt", "http://qudt.org/schema/qudt/"],
];

const NUMERIC = new Set(
  [
    "integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger",
    "positiveInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
    "negativeInteger", "nonPositiveInteger",
  ].map((each) => XSD + each),
);

export function numberOf(term: Term | undefined): number | null {
  if (!term || term.type !== "literal" || !term.datatype || !NUMERIC.has(term.datatype)) return null;
  const found = Number(term.value);
  return Number.isFinite(found) ? found : null;
}

/** The last readable part of an IRI, or a known prefix and the rest. */
export function shortIri(iri: string): string {
  for (const [prefix, space] of PREFIXES) {
    if (iri.startsWith(space) && iri.length > space.length) return `${prefix}:${iri.slice(space.length)}`;
  }
  const parts = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/#?]*\/?|urn:(?:[^:]+:)?(?=.))(.*)$/i.exec(iri);
  const rest = parts?.[1] ?? "";
  const tail = /[^/#:]+[/#]?$/.exec(rest.replace(/[/#]$/, ""))?.[0];
  return tail ? decode(tail) : iri;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A term of JSON results whose value is a triple, as text. */
function quoted(term: Term, spell: (part: Term) => string): string {
  const value: unknown = term.value;
  if (typeof value === "string") return value;
  const parts = value as { subject: Term; predicate: Term; object: Term };
  return `<<( ${spell(parts.subject)} ${spell(parts.predicate)} ${spell(parts.object)} )>>`;
}

/** A term as one short text. */
export function shortTerm(term: Term): string {
  if (term.type === "triple") return quoted(term, shortTerm);
  if (term.type === "uri") return shortIri(term.value);
  if (term.type === "bnode") return `_:${term.value}`;
  const number = numberOf(term);
  if (number !== null) return shortNumber(number, term.value);
  return term.value;
}

function shortNumber(number: number, text: string): string {
  if (text.length <= 9 && !/e/i.test(text)) return text;
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return String(number);
  return String(Number(number.toPrecision(7)));
}

/** A term as N-Triples writes it; it identifies the term. */
export function fullTerm(term: Term): string {
  if (term.type === "triple") return quoted(term, fullTerm);
  if (term.type === "uri") return `<${term.value}>`;
  if (term.type === "bnode") return `_:${term.value}`;
  const text = JSON.stringify(term.value);
  if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
  return term.datatype && term.datatype !== `${XSD}string` ? `${text}^^<${term.datatype}>` : text;
}

const TERM =
  /\s*(?:<([^>]*)>|_:([^\s]+)|"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?|(<<.*>>))/y;

/** Read the terms of a line of N-Quads; what cannot be read is left out. */
export function parseLine(line: string): Term[] {
  const found: Term[] = [];
  TERM.lastIndex = 0;
  for (let match = TERM.exec(line); match; match = TERM.exec(line)) {
    const [, iri, blank, text, lang, datatype, quoted] = match;
    if (iri !== undefined) found.push({ type: "uri", value: unescape(iri) });
    else if (blank !== undefined) found.push({ type: "bnode", value: blank });
    else if (quoted !== undefined) found.push({ type: "triple", value: quoted });
    else {
      const term: Term = { type: "literal", value: unescape(text ?? "") };
      if (lang) term["xml:lang"] = lang;
      if (datatype) term.datatype = unescape(datatype);
      found.push(term);
    }
  }
  return found;
}

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };

function unescape(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g, (_all, four, eight, one) => {
    if (one !== undefined) return ESCAPES[one] ?? one;
    const code = parseInt(four ?? eight, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
  });
}
