/** Where a new query may begin: one question in each dialect. */

export interface Example {
  name: string;
  text: (stream: string) => string;
}

export const EXAMPLES: Example[] = [
  {
    name: "RSP-QL: a sliding window",
    text: (stream) => `# Every five seconds: what the stream said in the last ten.
REGISTER RSTREAM <urn:query:recent> AS
SELECT ?property (COUNT(*) AS ?statements)
FROM NAMED WINDOW <urn:window:recent> ON <${stream}> [RANGE PT10S STEP PT5S]
WHERE {
  WINDOW <urn:window:recent> { ?subject ?property ?value }
}
GROUP BY ?property
`,
  },
  {
    name: "C-SPARQL: the same, merged",
    text: (stream) => `REGISTER QUERY recent COMPUTED EVERY 5s AS
SELECT ?property (COUNT(*) AS ?statements)
FROM STREAM <${stream}> [RANGE 10s STEP 5s]
WHERE { ?subject ?property ?value }
GROUP BY ?property
`,
  },
  {
    name: "CQELS-QL: each statement at once",
    text: (stream) => `SELECT ?subject ?property ?value
WHERE {
  STREAM <${stream}> [NOW] { ?subject ?property ?value }
}
`,
  },
  {
    name: "CONSTRUCT: a stream from a stream",
    text: (stream) => `REGISTER RSTREAM <urn:query:types> AS
CONSTRUCT { ?subject a ?type }
FROM NAMED WINDOW <urn:window:recent> ON <${stream}> [RANGE PT10S STEP PT10S]
WHERE {
  WINDOW <urn:window:recent> { ?subject a ?type }
}
`,
  },
];
