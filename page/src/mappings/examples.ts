export const RECORD = `{
  "sensor": "4.5-2",
  "time": "2026-03-03T07:58:00Z",
  "speed": 31
}`;

export const YARRRML = `prefixes:
  ex: http://example.org/
  sosa: http://www.w3.org/ns/sosa/
sources:
  readings:
    access: http://example.org/readings
    type: stream
    referenceFormulation: jsonpath
mappings:
  reading:
    sources: readings
    s: ex:reading/$(sensor)/$(time)
    po:
      - [a, sosa:Observation]
      - [sosa:madeBySensor, ex:sensor/$(sensor)~iri]
      - [sosa:hasSimpleResult, $(speed)]
      - [sosa:resultTime, $(time), xsd:dateTime]
`;
