"""A query over a mapped stream: quads that no pattern can match are not made, and nothing else
changes.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir import Engine, rows
from quadweir.entailment.schema import Axiom, AxiomKind, Schema
from quadweir.mapping.prune import WITNESS
from quadweir.plan.matchtests import MatchTest
from quadweir.runtime.match.feeds import AllAsked
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad, parse_term
from quadweir.testing import Oracle

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

S = "urn:s"
MAPPING = """
@prefix rml: <http://w3id.org/rml/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@base <http://e.org/m/> .
<#a> rml:logicalSource _:in ;
  rml:subjectMap [ rml:template "http://e.org/lane/{lane}" ; rml:class <urn:Lane>, <urn:Thing> ] ;
  rml:predicateObjectMap [ rml:predicate <urn:speed> ;
    rml:objectMap [ rml:reference "speed" ; rml:datatype xsd:integer ] ] ;
  rml:predicateObjectMap [ rml:predicate <urn:name>, <urn:label> ;
    rml:objectMap [ rml:reference "name" ; rml:language "en" ] ] ;
  rml:predicateObjectMap [ rml:predicate <urn:near> ;
    rml:objectMap [ rml:template "http://e.org/lane/{near}" ] ] ;
  rml:predicateObjectMap [ rml:predicate <urn:page> ;
    rml:objectMap [ rml:reference "page" ; rml:termType rml:IRI ] ] ;
  rml:predicateObjectMap [ rml:predicateMap [ rml:template "urn:is-{kind}" ] ; rml:object "yes" ] ;
  rml:predicateObjectMap [ rml:predicate <urn:raw> ; rml:objectMap [ rml:reference "speed" ] ] .
<#b> rml:logicalSource _:in ;
  rml:subjectMap [ rml:template "{name} {lane}" ; rml:termType rml:BlankNode ] ;
  rml:predicateObjectMap [ rml:predicate <urn:of> ; rml:graph GRAPH ;
    rml:objectMap [ rml:template "http://e.org/lane/{lane}" ] ] .
_:in rml:source [ a rml:RelativePathSource ; rml:path "in.jsonl" ] ;
  rml:referenceFormulation rml:FORMULATION .
"""
RECORDS = [
    {"t": 1000, "lane": "1", "speed": 30, "name": "left", "near": "2", "page": "http://p/1"},
    {"t": 2000, "lane": "2", "speed": 31, "kind": "slow"},
    {"t": 3000, "lane": "1", "name": 'say "hi"', "near": "2"},
    {"t": 4000, "lane": "3 x", "page": "no iri", "speed": 7},
    {"t": 5000, "speed": 33, "near": "1"},
    {"t": "soon", "lane": "1"},
    {"t": 6000, "lane": "2", "near": "1", "kind": "fast", "speed": 50},
    {"t": 8000, "lane": None},
    {"t": 9500, "name": "nobody", "lane": "9"},
    {"t": 12000, "lane": "1", "speed": {"deep": 1}},
    {"t": 13000, "lane": "2", "speed": 31, "near": "1"},
    {"t": 21000, "other": 1},
]
WINDOW = "[RANGE 5 s STEP 2 s]"
# In CQELS-QL, the pattern of one window.
PATTERNS = {
    "a class": "?x a <urn:Lane>",
    "a predicate": "?x <urn:speed> ?v",
    "two predicates": "?x <urn:speed> ?v . ?x <urn:near> ?y",
    "a constant subject": "<http://e.org/lane/1> ?p ?v",
    "a subject of no template": "<http://e.org/car/1> ?p ?v",
    "a constant object": "?x ?p <http://e.org/lane/2>",
    "a literal": '?x ?p "left"@en',
    "a literal that may be of any kind": "?x ?p 31",
    "a predicate of a template": "?x <urn:is-fast> ?v",
    "the same term twice": "?x <urn:near> ?x",
    "nothing that is made": "?x <urn:other> ?v",
    "an unchecked IRI": "?x <urn:page> <http://p/1>",
    "a blank node": "?b <urn:of> ?x . ?x <urn:near> ?y",
    "everything": "?x ?p ?v",
}
QUERIES = {
    name: f"SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW} WHERE {{ WINDOW <urn:w> {{ {each} }} }}"
    for name, each in PATTERNS.items()
} | {
    "a count of nothing": f"""SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW}
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:page> ?v }} }}""",
    "on change": f"""REGISTER RSTREAM <urn:o> AS SELECT (COUNT(*) AS ?n)
        FROM NAMED WINDOW <urn:w> ON <{S}> [RANGE 3 s]
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:near> ?v }} }}""",
    "two windows": f"""REGISTER ISTREAM <urn:o> AS SELECT *
        FROM NAMED WINDOW <urn:w> ON <{S}> [RANGE 6 s] FROM NAMED WINDOW <urn:v> ON <{S}> [NOW]
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:near> ?y }} WINDOW <urn:v> {{ ?y <urn:speed> ?n }} }}""",
    "the last triples": f"""SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> [TRIPLES 4]
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:near> ?v }} }}""",
    "a named graph": f"""SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW}
        WHERE {{ WINDOW <urn:w> {{ GRAPH ?g {{ ?x <urn:of> ?v }} }} }}""",
    "a certain graph": f"""SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW}
        WHERE {{ WINDOW <urn:w> {{ GRAPH <urn:g> {{ ?x ?p ?v }} }} }}""",
    "C-SPARQL that is not empty": f"""REGISTER QUERY q AS SELECT (COUNT(*) AS ?n)
        FROM STREAM <{S}> [RANGE 2s STEP 1s] WHERE {{ ?x <urn:near> ?v }}""",
    "negation": f"""SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW}
        WHERE {{ WINDOW <urn:w> {{ ?x <urn:speed> ?v MINUS {{ ?x <urn:near> ?y }} }} }}""",
}
THING, LANE, NEAR, OF = (IRI(f"urn:{name}") for name in ("Any", "Lane", "near", "of"))
SCHEMA = Schema(
    (
        Axiom(AxiomKind.SUBCLASS, LANE, THING),
        Axiom(AxiomKind.SUBPROPERTY, NEAR, IRI("urn:linked")),
        Axiom(AxiomKind.INVERSE, OF, IRI("urn:has")),
        Axiom(AxiomKind.RANGE, NEAR, IRI("urn:Place")),
    )
)
ENTAILED = [
    "?x a <urn:Any>",
    "?x <urn:linked> ?y",
    "?x <urn:has> ?y",
    "?x a <urn:Place>",
    "?x a ?c",
]


def _write(folder: Path, graph: str) -> None:
    text = MAPPING.replace("FORMULATION", "JSONPath").replace("GRAPH", graph)
    (folder / "m.ttl").write_text(text)
    (folder / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RECORDS))


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    _write(tmp_path, "<urn:g>")
    engine = Engine(spark)
    engine.map(tmp_path / "m.ttl", stream=S, time="t", allow_dirs=[tmp_path])
    return engine


def _answers(engine: Engine, text: str, *, is_pruned: bool, schema: Schema | None = None) -> list:
    other = Engine(engine.spark)
    feeds = engine._streams.feeds()
    assert all(feed.asked is not None for feed in feeds.values())
    if not is_pruned:
        feeds = {iri: replace(feed, asked=None) for iri, feed in feeds.items()}
    other._streams.take_mapped(feeds)
    if schema is not None:
        other.schema(schema)
    query = other.query(text)
    found = query.spelled_answers().collect()
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in found)


def _elements(engine: Engine) -> list[Element]:
    found: dict[tuple[int, int], list[Quad]] = {}
    every = engine._streams.feeds()[S].open(None, None)
    for row in every.where("reason is null").collect():
        terms = (parse_term(row[name]) for name in rows.TERMS[:3])
        graph = parse_term(row.graph) if row.graph is not None else None
        found.setdefault((row.event_time, row.position), []).append(Quad(*terms, graph))
    return [Element(S, time, place, tuple(quads)) for (time, place), quads in sorted(found.items())]


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_the_same(engine: Engine, name: str) -> None:
    text = QUERIES[name]
    pruned = _answers(engine, text, is_pruned=True)
    assert pruned == _answers(engine, text, is_pruned=False)
    if name in ("a predicate", "on change", "C-SPARQL that is not empty", "a certain graph"):
        wanted = Oracle(parse(text)).answers(_elements(engine))
        assert len(pruned) == len(wanted) > 0


@pytest.mark.parametrize("pattern", ENTAILED)
def test_answers_that_follow_are_the_same(engine: Engine, pattern: str) -> None:
    text = f"SELECT * FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW} WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    pruned = _answers(engine, text, is_pruned=True, schema=SCHEMA)
    assert pruned == _answers(engine, text, is_pruned=False, schema=SCHEMA)
    assert pruned


def _statements(frame) -> tuple[set, list]:
    found, letters = set(), []
    for row in frame.collect():
        if row.reason is None:
            terms = tuple(row[name] for name in rows.TERMS)
            found.add((row.event_time, row.position, terms))
        else:
            letters.append((row.place, row.reason))
    return found, sorted(letters)


def test_any_pattern_keeps_what_it_matches(engine: Engine) -> None:
    """Statements that pass a test stay, dead letters stay, and so does each element's time."""
    feed = engine._streams.feeds()[S]
    every, letters = _statements(feed.open(None, None))
    assert letters
    draw = random.Random(7)
    terms = [sorted({one[2][place] for one in every if one[2][place]}) for place in range(4)]
    others = ["<http://e.org/lane/>", '"30"', '"x"@en', "<urn:is->", "<urn:speed>"]
    for _ in range(12):
        constants = tuple(
            parse_term(draw.choice([*terms[place], *others])) if draw.random() < 0.5 else None
            for place in range(4)
        )
        test = MatchTest(S, constants, (), None, is_named=draw.random() < 0.2)
        only = feed.asked
        assert only is not None
        kept, left = _statements(only(AllAsked((test,))).open(None, None))
        assert left == letters
        made = {one for one in kept if one[2][1] != WITNESS}
        assert made <= every
        passing = {
            one
            for one in every
            if (one[2][3] is not None or not test.is_named)
            and all(
                constant is None or one[2][place] == str(constant)
                for place, constant in enumerate(constants)
            )
        }
        assert passing <= made
        assert {time for time, _, _ in kept} == {time for time, _, _ in every}


def test_explain_says_what_is_left_out(engine: Engine) -> None:
    text = engine.query(QUERIES["a predicate"]).explain()
    assert "in.jsonl: 9 of 10 quads of a record are not made" in text
    assert "not made" not in engine.query(QUERIES["everything"]).explain()
