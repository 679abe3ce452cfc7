"""Road sensors' speeds joined with their flows, as in the appendix of paper 000: over two topics in a
dynamic or a tumbling window, and over two files."""

from __future__ import annotations

PREFIXES = """
@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> .
@prefix qw: <urn:quadweir:mapping#> .
@base <http://example.com/base/> .
"""
KEYS = "internalId,lat,long,timestamp"


def kafka(broker: str, topic: str) -> str:
    return (
        f'[ a rmls:KafkaStream ; rmls:broker "{broker}" ; rmls:groupId "1" ; rmls:topic "{topic}" ]'
    )


def mapping(speed: str, flow: str, *, join: str = "", iterator: str = "$", keys: str = KEYS) -> str:
    """A mapping of two sources, with what is said of the window in `join`."""
    return f"""{PREFIXES}
<JoinConfigMap> a rmls:JoinConfigMap ; rmls:joinType {join or "rmls:TumblingJoin"} .
<NDWSpeedMap> a rr:TriplesMap ;
  rml:logicalSource [ rml:source {speed} ; rml:referenceFormulation ql:JSONPath ;
    rml:iterator "{iterator}" ] ;
  rr:subjectMap [ rr:template
    "http://example.com/resource/{{internalId}}?lat={{lat}}&long={{long}}&speed={{speed}}&accuracy={{accuracy}}&timestamp={{timestamp}}" ] ;
  rr:predicateObjectMap [
    rr:predicate <http://example.com/ontology/laneFlow> ;
    rr:objectMap [
      rr:parentTriplesMap <NDWFlowMap> ;
      {"rmls:joinConfig <JoinConfigMap> ;" if join else ""}
      rr:joinCondition [ rr:child "{keys}" ; rr:parent "{keys}" ]
    ]
  ] .
<NDWFlowMap> a rr:TriplesMap ;
  rml:logicalSource [ rml:source {flow} ; rml:referenceFormulation ql:JSONPath ;
    rml:iterator "{iterator}" ] ;
  rr:subjectMap [ rr:template
    "http://example.com/resource/{{internalId}}?lat={{lat}}&long={{long}}&flow={{flow}}&period={{period}}&accuracy={{accuracy}}&timestamp={{timestamp}}" ] .
"""


def reading(lane: str, number: int, minute: int, **value: object) -> dict[str, object]:
    """One reading of a sensor; `number` makes it different from the others of its minute."""
    return {
        "internalId": lane,
        "lat": 52.5 + number * 0,
        "long": 4.9,
        "period": 60,
        "accuracy": number,
        "timestamp": f"2017-02-15 10:{minute:02}:00",
        **value,
    }
