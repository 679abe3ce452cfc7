"""Parse, render, read: the same tree; one question in three dialects: one algebra."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.strategies import ALLOW, Question, queries, questions
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.algebra.streams import EVERY_INSTANT, ON_CLOSE, OutputOperator
from quadweir.algebra.traverse import rewrite, walk
from quadweir.algebra.windows import Content
from quadweir.syntax import detect, parse
from quadweir.terms import IRI
from rendered_trees import read_pattern, read_query


@pytest.mark.parametrize("dialect", ["sparql", "rspql", "csparql", "cqels", "sparqlstream"])
@given(data=st.data())
def test_a_rendered_query_reads_back_as_the_same_tree(dialect: str, data: st.DataObject) -> None:
    text = data.draw(queries(dialect, slices=True, construct=True))
    query = parse(text, dialect=dialect, allow=ALLOW)
    rendered = render(query)
    again = read_query(rendered)
    assert again == query
    assert hash(again) == hash(query)
    assert render(again) == rendered
    assert read_pattern(render(query.pattern)) == query.pattern


@given(questions("common", min_windows=1, max_windows=2))
def test_the_dialect_of_a_windowed_query_is_detected(question: Question) -> None:
    assert detect(question.text("rspql")) in ("rspql",)
    assert detect(question.text("csparql")) == "csparql"


def alike(query: ContinuousQuery) -> ContinuousQuery:
    """Remove the intended differences of the dialects: names, content, report, output."""
    names = {window.name: IRI(f"urn:w{n}") for n, window in enumerate(query.windows)}

    def rename(node: Node) -> Node:
        match node:
            case WindowPattern(window=IRI() as name, input=source):
                return WindowPattern(window=names[name], input=source)
            case _:
                return node

    windows = tuple(
        replace(window, name=names[window.name], content=Content.BAG) for window in query.windows
    )
    return replace(
        query,
        pattern=rewrite(query.pattern, rename),
        windows=windows,
        report=ON_CLOSE,
        tick=EVERY_INSTANT,
        output=OutputOperator.RSTREAM,
    )


@given(questions("common", min_windows=1, max_windows=1))
def test_one_question_in_all_dialects_is_one_algebra(question: Question) -> None:
    rspql, csparql, cqels, sparqlstream = (
        parse(question.text(dialect), dialect=dialect, allow=ALLOW)
        for dialect in ("rspql", "csparql", "cqels", "sparqlstream")
    )
    assert alike(rspql) == alike(csparql) == alike(sparqlstream)
    used = {node.window for node in walk(rspql.pattern) if isinstance(node, WindowPattern)}
    if used:
        assert alike(rspql) == alike(cqels)


@given(questions("common", min_windows=2, max_windows=2))
def test_two_windows_in_rspql_and_cqels_are_one_algebra(question: Question) -> None:
    rspql = parse(question.text("rspql"), dialect="rspql", allow=ALLOW)
    cqels = parse(question.text("cqels"), dialect="cqels", allow=ALLOW)
    order = {window.stream: number for number, window in enumerate(rspql.windows)}
    # CQELS-QL knows only the windows it uses, in the order of their use.
    used = sorted(cqels.windows, key=lambda window: order[window.stream])
    kept = {window.stream for window in used}
    ours = replace(
        rspql, windows=tuple(window for window in rspql.windows if window.stream in kept)
    )
    assert alike(ours) == alike(replace(cqels, windows=tuple(used)))
