"""The text form: what it looks like, that it is complete, and what is not one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quadweir.algebra.patterns import BasicPattern
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.algebra.render import render, render_expression, term
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
)
from quadweir.errors import LimitError, QuerySyntaxError
from quadweir.terms import IRI, BlankNode, Literal, Variable
from quadweir.vocab import XSD
from rendered_trees import read_expression, read_pattern, read_query
from trees import asked


def test_layout() -> None:
    query = asked(
        "SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE 5s STEP 1s] { WINDOW :w { ?a :p 1 }"
        " FILTER(?a != 'x') }"
    )
    assert (
        render(query)
        == """\
(query (select ?a)
  (windows
    (declare <http://example.org/w> <http://example.org/s> (range 5000ms step 1000ms) graph))
  (report on-close)
  (output rstream)
  (pattern
    (project (?a)
      (filter (!= ?a "x")
        (window <http://example.org/w>
          (bgp
            (triple ?a <http://example.org/p> 1)))))))
"""
    )


@pytest.mark.parametrize(
    "scope",
    [
        TimeScope(range_ms=5),
        TimeScope(range_ms=5, step_ms=2, origin_ms=1),
        TimeScope(range_ms=5, origin_ms=-3),
        TimeScope(range_ms=5, step_ms=2, full=True),
        TimeScope(range_ms=5, step_ms=2, origin_ms=7, full=True, while_open=True),
        CountScope(unit=CountUnit.TRIPLES, size=3),
        CountScope(unit=CountUnit.ELEMENTS, size=3, step=2),
        PastScope(from_ms=5, to_ms=2),
        PastScope(from_ms=5, to_ms=0, step_ms=2, origin_ms=7),
        NowScope(),
        AllScope(),
    ],
    ids=repr,
)
def test_every_window_reads_back(scope: Scope) -> None:
    for stream in (IRI("s"), Variable("s")):
        window = Window(
            name=IRI("w"),
            stream=stream,
            scope=scope,
            content=Content.BAG,
            event_time=IRI("urn:time"),
        )
        query = ContinuousQuery(
            form=AskForm(),
            pattern=BasicPattern(),
            name='a "name" with\nblanks',
            windows=(window, replace(window, name=IRI("v"), event_time=None)),
            default_graphs=(IRI("urn:g"),),
            named_graphs=(IRI("urn:h"), IRI("urn:i")),
            default_graph_windows=(IRI("v"),),
            report=Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True),
            tick=Tick(every_ms=9),
            output=OutputOperator.DSTREAM,
        )
        assert read_query(render(query)) == query


@pytest.mark.parametrize(
    "value",
    [
        Literal(""),
        Literal('a "b" \\ \n\t\x00 (c) ?d <e> #f'),
        Literal("x", language="en-gb"),
        Literal("5", datatype=IRI(XSD.integer)),
        Literal("five", datatype=IRI(XSD.integer)),
        Literal("1.", datatype=IRI(XSD.decimal)),
        Literal("-.5", datatype=IRI(XSD.decimal)),
        Literal("1e5", datatype=IRI(XSD.double)),
        Literal("1.E+5", datatype=IRI(XSD.double)),
        Literal("INF", datatype=IRI(XSD.double)),
        Literal("true", datatype=IRI(XSD.boolean)),
        Literal("1", datatype=IRI(XSD.boolean)),
        Literal("true"),
        IRI("http://x/(a)#b?c"),
        IRI("relative"),
    ],
    ids=repr,
)
def test_every_constant_reads_back(value: IRI | Literal) -> None:
    (constant,) = [read_expression(term(value))]
    assert constant.term == value  # type: ignore[union-attr]
    assert render_expression(constant) == term(value)


def test_templates_read_back() -> None:
    query = asked("CONSTRUCT { _:a ?p 1 } { ?s ?p ?o }")
    assert term(BlankNode("b1")) in render(query)
    assert read_query(render(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "",
        ")",
        "(query",
        "(query) (query)",
        "(bgp)",
        "(query (ask) (report never) (output rstream) (pattern (bgp)))",
        "(query (ask) (report on-change) (output rstream) (pattern (join (bgp))))",
        "(query (ask) (report on-change) (output rstream) (pattern (filter (f) (bgp))))",
        "(query (ask) (report on-change) (output rstream) (pattern (bgp (triple _:a ?b ?c))))",
        '(query (name "x" (ask)',
        "query",
    ],
)
def test_what_is_no_tree(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        read_query(text)


def test_a_tree_too_deep() -> None:
    with pytest.raises(LimitError):
        read_pattern("(distinct " * 50_000 + "(bgp)" + ")" * 50_000)
