/** Points on the earth in answers: latitudes with longitudes, or points in WKT. */
import type { Answer, Term } from "../api/types";
import { fullTerm, GEO, parseLine, shortIri, shortTerm, WKT } from "../rdf/terms";

export interface GeoPoint {
  key: string;
  name: string;
  lat: number;
  long: number;
  t: number;
  answer: Answer;
}

const LATITUDES = /^(?:geo)?_?lat(?:itude)?$/i;
const LONGITUDES = /^(?:geo)?_?(?:long?|lng|longitude)$/i;
const POINT = /^\s*(?:<[^>]*>\s*)?POINT\s*(?:Z|M|ZM)?\s*\(\s*([-+0-9.eE]+)\s+([-+0-9.eE]+)/i;

export function isPlaceName(variable: string): boolean {
  return LATITUDES.test(variable) || LONGITUDES.test(variable);
}

/** The last place of each thing, in the order in which things came. */
export function placesOf(variables: string[], answers: Answer[]): GeoPoint[] {
  const lat = variables.find((each) => LATITUDES.test(each));
  const long = variables.find((each) => LONGITUDES.test(each));
  const found = new Map<string, GeoPoint>();
  const add = (point: GeoPoint) => {
    if (Math.abs(point.lat) <= 90 && Math.abs(point.long) <= 180) found.set(point.key, point);
  };
  for (const answer of answers) {
    if (answer.sign === "-") continue;
    if (answer.graph) {
      pointsOfTriples(answer).forEach(add);
      continue;
    }
    const bindings = answer.bindings ?? {};
    const about = variables.filter((each) => bindings[each]?.type === "uri");
    const named = about.map((each) => bindings[each]).filter((each): each is Term => !!each);
    const own = { t: answer.t, answer };
    const at = lat && long ? pair(bindings[lat], bindings[long]) : null;
    if (at) {
      const key = named.map(fullTerm).join(" ") || `${at.lat} ${at.long}`;
      add({ ...own, ...at, key, name: named.map(shortTerm).join(" ") || key });
    }
    for (const variable of variables) {
      const point = wkt(bindings[variable]);
      if (!point) continue;
      const key = `${named.map(fullTerm).join(" ") || `${point.lat} ${point.long}`} ${variable}`;
      add({ ...own, ...point, key, name: named.map(shortTerm).join(" ") || `?${variable}` });
    }
  }
  return [...found.values()];
}

function pointsOfTriples(answer: Answer): GeoPoint[] {
  const parts = new Map<string, { lat?: Term; long?: Term; wkt?: Term; subject: Term }>();
  for (const line of answer.graph ?? []) {
    const [subject, predicate, object] = parseLine(line);
    if (!subject || !predicate || !object) continue;
    const isLat = predicate.value === `${GEO}lat`;
    const isLong = predicate.value === `${GEO}long`;
    const isWkt = object.datatype === WKT;
    if (!isLat && !isLong && !isWkt) continue;
    const known = parts.get(fullTerm(subject)) ?? { subject };
    if (isLat) known.lat = object;
    else if (isLong) known.long = object;
    else known.wkt = object;
    parts.set(fullTerm(subject), known);
  }
  const found: GeoPoint[] = [];
  for (const [key, part] of parts) {
    const at = pair(part.lat, part.long) ?? wkt(part.wkt);
    if (at) found.push({ ...at, key, name: shortIri(part.subject.value), t: answer.t, answer });
  }
  return found;
}

function pair(lat: Term | undefined, long: Term | undefined): { lat: number; long: number } | null {
  if (!lat || !long || lat.type !== "literal" || long.type !== "literal") return null;
  if (!lat.value.trim() || !long.value.trim()) return null;
  const [y, x] = [Number(lat.value), Number(long.value)];
  return Number.isFinite(y) && Number.isFinite(x) ? { lat: y, long: x } : null;
}

function wkt(term: Term | undefined): { lat: number; long: number } | null {
  if (!term || term.type !== "literal" || term.datatype !== WKT) return null;
  const match = POINT.exec(term.value);
  // Well-known text has the longitude first.
  return match ? pair({ type: "literal", value: match[2] ?? "" }, { type: "literal", value: match[1] ?? "" }) : null;
}
