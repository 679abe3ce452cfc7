"""The windows that are compared, by the names of the report, and the mappings that use them."""

from __future__ import annotations

from typing import Final

from quadweir.bench.ndw.publisher import FLOW, SPEED
from quadweir.kernel.streamjoin.windows import JoinWindow
from quadweir.mapping.joins import window_of
from quadweir.mapping.read import parse_mapping

TUMBLING: Final = "tumbling 2 s"
SLIDING: Final = "sliding 2 s by 1 s"
INTERVAL: Final = "interval 2 s"
PAPER: Final = "dynamic, paper"
RELEASED: Final = "dynamic, later release"
SAFE: Final = "dynamic, boundary-safe"
COUNT: Final = "dynamic, by count"

INTERVAL_MS: Final = 2_000
WINDOWS: Final = {
    TUMBLING: 'rmls:windowType rmls:Tumbling ; qw:size "2 s"',
    SLIDING: 'rmls:windowType rmls:Sliding ; qw:size "2 s" ; qw:slide "1 s"',
    INTERVAL: f'rmls:windowType qw:Interval ; qw:distance "{INTERVAL_MS} ms"',
    PAPER: 'rmls:windowType rmls:DynamicWindow ; qw:variant "paper"',
    RELEASED: 'rmls:windowType rmls:DynamicWindow ; qw:variant "released"',
    SAFE: 'rmls:windowType rmls:DynamicWindow ; qw:variant "carry"',
    COUNT: "rmls:windowType rmls:DynamicWindow ; qw:count 1000",
}
KEYS: Final = ("internalId", "lat", "long", "timestamp")

_PREFIXES: Final = """\
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
@prefix qw: <urn:quadweir:mapping#> . @base <http://example.com/base/> .
"""
_CHILD: Final = """
<NDWSpeedMap> a rr:TriplesMap ;
  rml:logicalSource [ rml:source "%(speed)s" ; rml:referenceFormulation ql:JSONPath ;
    rml:iterator "$" ] ;
  rr:subjectMap [ rr:template "http://example.com/speed/{number}/{sent}" ] ;
  rr:predicateObjectMap [ rr:predicate <http://example.com/ontology/laneFlow> ;
    rr:objectMap [ rr:parentTriplesMap <NDWFlowMap> ; %(window)s
      rr:joinCondition %(conditions)s ] ] .
"""
_PARENT: Final = """
<NDWFlowMap> a rr:TriplesMap ;
  rml:logicalSource [ rml:source "%(flow)s" ; rml:referenceFormulation ql:JSONPath ;
    rml:iterator "$" ] ;
  rr:subjectMap [ rr:template "http://example.com/flow/{number}/{sent}" ] .
"""
_ALONE: Final = """
<%(name)s> a rr:TriplesMap ;
  rml:logicalSource [ rml:source "{%(name)s}" ; rml:referenceFormulation ql:JSONPath ;
    rml:iterator "$" ] ;
  rr:subjectMap [ rr:template "http://example.com/%(reading)s/{number}/{sent}" ] ;
  rr:predicateObjectMap [ rr:predicate <http://example.com/ontology/lane> ;
    rr:objectMap [ rml:reference "internalId" ] ] .
"""


def join_mapping(window: str, *, delay_ms: int | None = None) -> str:
    """The paper's mapping over two streams, as frames of the streams' names."""
    delay = f' ; qw:delay "{delay_ms} ms"' if delay_ms is not None else ""
    given = f"{WINDOWS[window]}{delay} ;"
    return _join(f"{{{SPEED.name}}}", f"{{{FLOW.name}}}", given)


def bounded_mapping() -> str:
    """The same join over complete files."""
    return _join(f"{SPEED.name}.jsonl", f"{FLOW.name}.jsonl", "")


def _join(speed: str, flow: str, window: str) -> str:
    conditions = ", ".join(f'[ rr:child "{key}" ; rr:parent "{key}" ]' for key in KEYS)
    text = _CHILD % {"speed": speed, "window": window, "conditions": conditions}
    return _PREFIXES + text + _PARENT % {"flow": flow}


def pass_through_mapping() -> str:
    """Both streams, each record as one triple, without any join."""
    parts = [_ALONE % {"name": side.name, "reading": side.reading} for side in (SPEED, FLOW)]
    return _PREFIXES + "".join(parts)


def kernel_window(name: str) -> JoinWindow:
    """The kernel's window for that name: the meaning of the mapping's window.

    >>> kernel_window(TUMBLING)
    Tumbling(size_ms=2000)
    """
    mapping = parse_mapping(join_mapping(name))
    (joined,) = (item for each in mapping.triples_maps for item in each.ref_object_maps())
    assert joined.window is not None
    return window_of(joined.window)
