/** What the service sends. docs/reference/service.md says what it means. */

export interface Place {
  line: number;
  column: number;
  end_line: number | null;
  end_column: number | null;
  source: string | null;
}

export interface Problem {
  title?: string;
  status: number;
  code: string;
  message: string;
  detail: string | null;
  hint: string | null;
  places: Place[];
}

export interface Warning {
  message: string;
  detail?: string | null;
  hint?: string | null;
  places?: Place[];
}

export type Role = "none" | "read" | "push" | "admin";

export interface Session {
  role: Role | null;
  needs_token: boolean;
  version: string;
}

export interface NetworkMetrics {
  batches: number;
  statements: number;
  dead_letters: number;
  ahead: number;
  answers: number;
  late: number;
  through: number | null;
  held: number | null;
  state_rows: number | null;
  state_bytes: number | null;
  batch_ms: number | null;
  kernel_ms: number | null;
  state_ms: number | null;
  spark_ms: number | null;
  input_rate: number;
  answer_rate: number;
  lag_ms: number | null;
  queries: number;
  templates: number;
}

export interface NetworkTable {
  id: string;
  state: string;
  error: Problem | null;
  streams: string[];
  queries: number;
  templates: number;
  metrics: NetworkMetrics;
}

export interface GraphNode {
  id: string;
  kind: "stream" | "mapping" | "template" | "query";
  label: string;
  source?: string;
  rate?: number | null;
  networks?: string[];
  network?: string;
  members?: number;
  batch_ms?: number | null;
  reason?: string | null;
  key?: string | null;
  patterns?: string[];
  template?: number;
  state?: string;
  answers?: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  rate: number | null;
  shared?: boolean;
}

export type Column = (number | null)[];
export type Columns = Record<string, Column>;

export interface OverviewDocument {
  service: {
    version: string;
    started_ms: number;
    now_ms: number;
    ready: boolean;
    role: Role;
    shards: number | null;
    subscribers: number;
  };
  networks: NetworkTable[];
  nodes: GraphNode[];
  edges: GraphEdge[];
  more_queries: number;
  history?: {
    step_ms: number;
    t: number[];
    networks: Record<string, Columns>;
    streams: Record<string, Columns>;
  };
  sample?: {
    t: number;
    networks: Record<string, Record<string, number | null>>;
    streams: Record<string, Record<string, number | null>>;
  };
}

export interface QueryInfo {
  name: string;
  network: string;
  state: string;
  reason?: string | null;
  template?: number;
  shared_with?: number;
  answers?: number;
  rate?: number;
  streams?: string[];
  form?: string;
  variables?: string[];
  dialect?: string;
  text?: string;
  content?: string | null;
  base?: string | null;
  allow_unbounded?: string[];
  warnings?: Warning[];
}

export interface WindowFacts {
  name: string | null;
  stream: string;
  scope: string;
  content: string;
  state: string | null;
  bounded: boolean;
}

export interface CheckResult {
  ok: boolean;
  problem: Problem | null;
  dialect: string | null;
  warnings: Warning[];
  explanation: {
    dialect: string;
    name: string | null;
    answers: string;
    output: string;
    report: string;
    windows: WindowFacts[];
    algebra: string;
    optimized: string;
    rules: unknown[];
  } | null;
  plan: string | null;
  plan_problem: Problem | null;
  network: string | null;
  streams: string[];
  form: string | null;
  variables: string[];
}

/** A term of RDF, in the way of SPARQL's JSON results. */
export interface Term {
  type: "uri" | "literal" | "bnode" | "triple" | string;
  value: string;
  datatype?: string;
  "xml:lang"?: string;
}

export interface Answer {
  id: string;
  t: number;
  sign: "+" | "-";
  bindings?: Record<string, Term>;
  graph?: string[];
}

export interface Derivation {
  carries?: string;
  steps?: { rule: string; axiom?: string }[];
}

export interface Reason {
  triple: string;
  graph?: string;
  elements?: ({ stream: string; time: number; position: number } & Derivation)[];
  more_elements?: number;
  static?: ({ graph?: string } & Derivation)[];
}

export interface WhyResult {
  complete: boolean;
  triples: Reason[];
}

export interface WindowContent {
  name: string;
  stream: string;
  scope: string;
  count: number;
  newest: { t: number; statement: string }[];
}

export interface WindowsResult {
  query: string;
  at: number | null;
  complete: boolean;
  windows: WindowContent[];
}

export interface Letter {
  seq: number;
  at: number;
  network: string;
  reason?: string;
  record?: string;
  value?: string;
  source?: string;
  place?: string;
  [key: string]: unknown;
}

export interface MappingInfo {
  name: string;
  streams: string[];
  sources: string[];
  declared_by: string;
  language: string;
  text?: string;
  stream?: string;
  time?: unknown;
}

export interface PreviewResult {
  problem: Problem | null;
  triples: string[];
  records: { index: number; triples: string[]; error: Problem | null }[];
}

export interface StreamInfo {
  iri: string;
  kind: string;
  format: string | null;
  made_by: string | null;
  declared_by: string;
  rate: number | null;
  lag_ms: number | null;
  networks: string[];
}
