/** Highlighting: queries in all dialects, Turtle, YAML and JSON. */
import { HighlightStyle, StreamLanguage, type StreamParser, syntaxHighlighting } from "@codemirror/language";
import { json } from "@codemirror/legacy-modes/mode/javascript";
import { xml } from "@codemirror/legacy-modes/mode/xml";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";

export type Language = "query" | "turtle" | "yaml" | "json" | "xml" | "text";

const words = (text: string) => new Set(text.trim().split(/\s+/));

/** Words of SPARQL and of what the dialects add. */
export const KEYWORDS = words(`
  BASE PREFIX SELECT CONSTRUCT ASK DESCRIBE DISTINCT REDUCED WHERE FROM NAMED GRAPH OPTIONAL UNION MINUS FILTER BIND AS
  VALUES SERVICE SILENT GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET EXISTS NOT IN UNDEF SEPARATOR true false a VERSION
`);
export const STREAM_KEYWORDS = words(`
  REGISTER STREAM QUERY RSTREAM ISTREAM DSTREAM WINDOW ON RANGE STEP SLIDE TUMBLING TRIPLES ELEMENTS COUNT NOW ALL TO
  COMPUTED EVERY
`);
export const FUNCTIONS = words(`
  COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT STR LANG LANGMATCHES DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND
  CONCAT STRLEN UCASE LCASE ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES
  SECONDS TIMEZONE TZ UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISURI ISBLANK
  ISLITERAL ISNUMERIC REGEX SUBSTR REPLACE
`);

interface QueryState {
  /** The quote that ends a long string; empty outside of one. */
  long: string;
}

/** For queries and for Turtle. A tokenizer is enough to colour; the service says what is wrong. */
const query: StreamParser<QueryState> = {
  name: "rsp",
  startState: () => ({ long: "" }),
  copyState: (state) => ({ ...state }),
  token(stream, state) {
    if (state.long) {
      if (stream.skipTo(state.long)) {
        stream.match(state.long);
        state.long = "";
      } else {
        stream.skipToEnd();
      }
      return "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match('"""') || stream.match("'''")) {
      state.long = stream.current();
      return "string";
    }
    if (stream.match(/^"(?:[^"\\\n]|\\.)*"?/) || stream.match(/^'(?:[^'\\\n]|\\.)*'?/)) return "string";
    if (stream.match(/^<[^<>"{}|^`\\\s]*>/)) return "link";
    if (stream.match(/^[?$][\p{L}_][\p{L}\p{N}_]*/u)) return "variableName";
    if (stream.match(/^_:[\p{L}\p{N}_.-]+/u)) return "atom";
    if (stream.match(/^@(?:prefix|base)\b/)) return "keyword";
    if (stream.match(/^@[a-zA-Z-]+/)) return "modifier";
    if (stream.match(/^PT?[0-9][0-9.A-Z]*\b/)) return "unit";
    if (stream.match(/^[0-9]+(?:\.[0-9]+)?(?:ms|s|sec|min|m|h|d|w|ns|us)\b/i)) return "unit";
    if (stream.match(/^[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?/)) return "number";
    if (stream.match(/^[\p{L}][\p{L}\p{N}_.-]*?:[\p{L}\p{N}_%./#-]*/u) || stream.match(/^:[\p{L}\p{N}_%./-]*/u))
      return "namespace";
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_]*/u) as RegExpMatchArray | null;
    if (word) {
      const text = word[0];
      const upper = text.toUpperCase();
      const isCalled = /^\s*\(/.test(stream.string.slice(stream.pos));
      if (isCalled && FUNCTIONS.has(upper)) return "function";
      if (STREAM_KEYWORDS.has(upper)) return "streamKeyword";
      if (KEYWORDS.has(upper) || text === "a" || text === "true" || text === "false") return "keyword";
      return null;
    }
    if (stream.match(/^(?:\^\^|&&|\|\||!=|<=|>=|[=<>!*/+|^-])/)) return "operator";
    stream.next();
    return "punctuation";
  },
  tokenTable: {
    streamKeyword: tags.definitionKeyword,
    function: tags.function(tags.variableName),
    link: tags.link,
    unit: tags.unit,
    modifier: tags.modifier,
    namespace: tags.namespace,
  },
  languageData: {
    commentTokens: { line: "#" },
    closeBrackets: { brackets: ["(", "[", "{", '"'] },
  },
};

function defined<T>(parser: StreamParser<T>): StreamLanguage<unknown> {
  const tokenTable = { property: tags.propertyName, ...parser.tokenTable };
  return StreamLanguage.define({ ...parser, tokenTable }) as StreamLanguage<unknown>;
}

const LANGUAGES: Record<Exclude<Language, "text">, StreamLanguage<unknown>> = {
  query: defined(query),
  turtle: defined(query),
  yaml: defined(yaml),
  json: defined(json),
  xml: defined(xml),
};

export function languageOf(name: Language): Extension {
  return name === "text" ? [] : LANGUAGES[name];
}

export const highlighting = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.bool], color: "var(--keyword)", fontWeight: "600" },
    { tag: tags.definitionKeyword, color: "var(--main)", fontWeight: "600" },
    { tag: tags.function(tags.variableName), color: "var(--series-1)" },
    { tag: tags.variableName, color: "var(--ink)", fontWeight: "500" },
    { tag: [tags.link, tags.namespace, tags.meta, tags.atom], color: "var(--iri)" },
    { tag: [tags.propertyName, tags.attributeName, tags.typeName, tags.tagName], color: "var(--iri)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--literal)" },
    { tag: [tags.number, tags.unit], color: "var(--number)" },
    { tag: tags.comment, color: "var(--comment)", fontStyle: "italic" },
    { tag: [tags.operator, tags.punctuation, tags.modifier], color: "var(--ink-soft)" },
  ]),
);
