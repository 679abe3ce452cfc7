/** The algebra of a query is an S-expression; here it becomes a tree of operators. */

export type SExpr = string | SExpr[];

const TOKEN = /\s*(\(|\)|"(?:[^"\\]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?|<[^>\s]*>|[^\s()]+)/y;

export function parse(text: string): SExpr | null {
  TOKEN.lastIndex = 0;
  const open: SExpr[][] = [[]];
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const token = match[1] ?? "";
    const top = open[open.length - 1];
    if (token === "(") {
      open.push([]);
    } else if (token === ")") {
      const done = open.pop();
      const above = open[open.length - 1];
      if (!done || !above) return null;
      above.push(done);
    } else {
      top?.push(token);
    }
  }
  return open[0]?.[0] ?? null;
}

export interface Operator {
  name: string;
  words: string;
  triples: string[];
  inputs: Operator[];
  window: string | null;
}

const PATTERNS = new Set([
  "project", "window", "bgp", "join", "leftjoin", "left-join", "union", "filter", "extend", "group", "distinct",
  "reduced", "minus", "order", "order-by", "slice", "values", "graph", "service", "path", "table", "streamof",
]);

function spelled(expr: SExpr): string {
  return typeof expr === "string" ? expr : `(${expr.map(spelled).join(" ")})`;
}

function opOf(expr: SExpr): string {
  return Array.isArray(expr) && typeof expr[0] === "string" ? expr[0] : "";
}

/** Read the part of an S-expression that is a pattern. */
export function operatorOf(expr: SExpr): Operator {
  const name = opOf(expr);
  const rest = Array.isArray(expr) ? expr.slice(1) : [];
  const found: Operator = { name, words: "", triples: [], inputs: [], window: null };
  const words: string[] = [];
  for (const each of rest) {
    const inner = opOf(each);
    if (inner === "triple" || inner === "path") found.triples.push((each as SExpr[]).slice(1).map(spelled).join(" "));
    else if (PATTERNS.has(inner)) found.inputs.push(operatorOf(each));
    else words.push(spelled(each));
  }
  if (name === "window" && typeof rest[0] === "string") found.window = rest[0];
  found.words = words.join(" ");
  return found;
}

export interface AlgebraOfQuery {
  select: string;
  output: string;
  report: string;
  windows: { name: string; stream: string; scope: string }[];
  pattern: Operator | null;
}

export function algebraOf(text: string): AlgebraOfQuery | null {
  const root = parse(text);
  if (!Array.isArray(root) || opOf(root) !== "query") return null;
  const found: AlgebraOfQuery = { select: "", output: "", report: "", windows: [], pattern: null };
  for (const each of root.slice(1)) {
    if (!Array.isArray(each)) continue;
    switch (opOf(each)) {
      case "select":
      case "construct":
      case "ask":
      case "describe":
        found.select = spelled(each).slice(1, -1);
        break;
      case "output":
        found.output = each.slice(1).map(spelled).join(" ");
        break;
      case "report":
        found.report = each.slice(1).map(spelled).join(" ");
        break;
      case "windows":
        for (const window of each.slice(1)) {
          if (!Array.isArray(window) || opOf(window) !== "declare") continue;
          const [, name, stream, scope] = window;
          found.windows.push({
            name: spelled(name ?? ""),
            stream: spelled(stream ?? ""),
            scope: spelled(scope ?? "").replace(/^\(|\)$/g, ""),
          });
        }
        break;
      case "pattern":
        if (each[1]) found.pattern = operatorOf(each[1]);
        break;
      default:
        break;
    }
  }
  return found;
}
