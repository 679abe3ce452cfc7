"""The engine in this process gives the oracle's answers for generated queries and streams (P3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.dense import Feed, dense_questions, feeds, static_data
from properties.schemas import RULES, schemas, typed, typed_feed, typed_text
from properties.strategies import ALLOW, EVERYTHING, windowed, windowings
from quadweir.algebra.query import ContinuousQuery, DescribeForm
from quadweir.algebra.streams import OutputOperator
from quadweir.entailment.schema import AxiomKind, Schema
from quadweir.errors import UnsupportedError
from quadweir.runtime.local import query as local
from quadweir.sources.declare import FileSource, Format, StreamDeclaration
from quadweir.sources.fileplan import PARSED
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Element, Oracle, Reasoner, diff_answers
from quadweir.testing.shards import as_answers

APART = [EVERYTHING - {"path"}, EVERYTHING - {"exists"}]


def rows_of(elements: list[Element]) -> pa.Table:
    """The elements as reading a file gives them."""
    found = [
        {
            "stream": each.stream,
            "event_time": each.event_time,
            "position": each.position,
            "subject": str(quad.subject),
            "predicate": str(quad.predicate),
            "object": str(quad.object),
            "graph": None if quad.graph is None else str(quad.graph),
        }
        for each in elements
        # What an element says twice is there twice.
        for quad in (*each.quads, each.quads[0])
    ]
    return pa.Table.from_pylist(found, PARSED)


def answered(
    query: ContinuousQuery, feed: Feed, static: list[Quad], schema: Schema | None = None
) -> list[Answer]:
    streams = {
        iri: StreamDeclaration(
            iri=iri, source=FileSource(path=Path("none")), format=Format.TIMED_LINES
        )
        for iri in sorted({each.stream for each in feed})
    }
    rows = {iri: rows_of([each for each in feed if each.stream == iri]) for iri in streams}
    with (
        mock.patch.object(local, "read_rows", lambda declared: rows[declared.iri]),
        mock.patch.object(local, "read_static", lambda _: iter(static)),
    ):
        found = local.LocalQuery(query, streams, schema=schema, static=["any"]).run()
    assert found.letters == ()
    return as_answers(found.answers, found.query)


# EXISTS and paths of no steps are tried apart, as in test_kernel.py.
@pytest.mark.parametrize("kinds", APART, ids=["operators", "paths"])
@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_this_process_gives_the_answers_of_the_oracle(
    dialect: str, kinds: frozenset[str], data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=kinds, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    assume(not isinstance(query.form, DescribeForm))
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    query = windowed(query, data.draw(windowings()))
    expected = Oracle(query, static=static).answers(feed)
    assert diff_answers(expected, answered(query, feed, static)) == ""


@pytest.mark.parametrize("kinds", APART, ids=["operators", "paths"])
@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_this_process_sees_what_a_schema_derives(
    dialect: str, kinds: frozenset[str], data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    schema = data.draw(schemas(kinds=[*RULES, AxiomKind.TRANSITIVE]))
    text = typed_text(data.draw(dense_questions(dialect, kinds=kinds)).text(dialect))
    feed, static = typed_feed(feed), list(map(typed, static))
    query = parse(text, dialect=dialect, allow=ALLOW)
    expected = Oracle(query, static=static, entail=Reasoner(schema)).answers(feed)
    try:
        found = answered(query, feed, static, schema)
    except UnsupportedError:
        assume(False)
        raise
    assert diff_answers(expected, found) == ""
