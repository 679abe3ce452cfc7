"""The lines of a network's answers: those that a single query writes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadweir import rows
from quadweir.algebra.query import ConstructForm
from quadweir.errors import UsageError
from quadweir.runtime.network.rendering import SolutionColumns, network_lines, query_lines
from quadweir.sinks.answertext import answer_text
from quadweir.sinks.lineformat import LineFormat
from quadweir.syntax.read import parse
from quadweir.terms import Term, parse_term
from quadweir.testing.scoping import fill
from terms_strategy import IRIS, OBJECTS, TEXT

ANSWERS = (LineFormat.ANSWERS_JSONL, LineFormat.ANSWERS_CSV, LineFormat.ANSWERS_TSV)
TEMPLATES = """
CONSTRUCT { ?x <urn:p> ?y }
CONSTRUCT { ?x <urn:p> ?y . ?x <urn:p> ?y . ?y <urn:q> ?x }
CONSTRUCT { _:a <urn:p> ?x . _:b <urn:q> _:a . _:a ?y _:b }
CONSTRUCT { ?x ?y ?z . GRAPH ?x { ?z <urn:p> 1 } GRAPH <urn:g> { ?y <urn:q> _:a } }
CONSTRUCT { GRAPH ?y { ?x <urn:p> "1"@en } GRAPH ?z { ?x ?y "\\n" } }
CONSTRUCT { _:a <urn:says> <<( ?x ?y ?z )>> . ?x <urn:says> <<( ?y <urn:p> _:a )>> }
""".strip().splitlines()

terms = st.none() | OBJECTS | IRIS


@st.composite
def solutions(draw: st.DrawFn, construct: ConstructForm | None = None) -> SolutionColumns:
    """Solutions of two queries; terms may be of any kind, and unbound."""
    count = draw(st.integers(0, 4))

    def column(each: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(each, min_size=count, max_size=count))

    spelled = terms.map(lambda term: None if term is None else str(term))
    return SolutionColumns(
        column(st.integers(4, 5)),  # type: ignore[arg-type]
        column(st.integers(-(2**40), 2**40)),  # type: ignore[arg-type]
        column(st.sampled_from("+-")),  # type: ignore[arg-type]
        {name: column(spelled) for name in ("y", "x", "z", "été")},  # type: ignore[misc]
        [f"n{place}" for place in range(count)],
        construct,
    )


def form_of(template: str) -> ConstructForm:
    text = f"{template} {{ STREAM <urn:s> [RANGE 5ms] {{ ?x ?y ?z }} }}"
    form = parse(text, dialect="cqels").form
    assert isinstance(form, ConstructForm)
    return form


@given(solutions(), TEXT, TEXT)
def test_json_lines_are_those_of_a_query_alone_with_its_name(
    found: SolutionColumns, one: str, other: str
) -> None:
    names = {4: one, 5: other}
    alone = answer_text(LineFormat.ANSWERS_JSONL, found.t, found.sign, found.bound)
    assert alone is not None
    expected = [
        f'{{"query":{json.dumps(names[query], ensure_ascii=False)},{line[1:]}'
        for query, line in zip(found.queries, alone, strict=True)
    ]
    assert [*network_lines(found, names)] == expected


@given(solutions())
def test_lines_for_the_sink_of_a_query_are_those_of_a_query_alone(found: SolutionColumns) -> None:
    for form in ANSWERS:
        assert query_lines(found, form) == answer_text(form, found.t, found.sign, found.bound)


@pytest.mark.parametrize("form", [each for each in LineFormat if each not in ANSWERS])
def test_solutions_are_no_triples(form: LineFormat) -> None:
    found = SolutionColumns([4], [5], ["+"], {"x": ["<urn:a>"]}, ["n"], None)
    if form is LineFormat.JSONL:
        assert query_lines(found, form) == ['{"t":5,"sign":"+","bindings":{"x":"<urn:a>"}}']
        return
    with pytest.raises(UsageError, match="cannot be written as"):
        query_lines(found, form)


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=20)
@given(data=st.data())
def test_a_template_is_filled_in_as_its_meaning_says(template: str, data: st.DataObject) -> None:
    form = form_of(template)
    found = data.draw(solutions(form))
    expected = []
    for place, name in enumerate(found.names):
        bound: dict[str, Term] = {
            variable: parse_term(spelled)
            for variable, column in found.bound.items()
            if (spelled := column[place]) is not None
        }
        expected.append(sorted(map(str, fill(form, bound, str(name)))))
    assert [*found.graphs()] == expected
    # A solution that makes no triple gives no answer.
    given_graphs = [graph for graph in expected if graph]
    lines = [json.loads(line) for line in query_lines(found, LineFormat.ANSWERS_JSONL)]
    assert [line[rows.TRIPLES] for line in lines] == given_graphs
    named = [json.loads(line) for line in network_lines(found, {4: "one", 5: "other"})]
    assert [line[rows.TRIPLES] for line in named] == given_graphs
    assert [each.graph for each in found.answers("one")] == [*map(tuple, given_graphs)]
    quads = [statement for graph in expected for statement in graph]
    assert query_lines(found, LineFormat.NQUADS) == quads


def test_triples_are_no_solutions() -> None:
    found = SolutionColumns([4], [5], ["+"], {"x": ["<urn:a>"]}, ["n"], None)
    found = replace(found, construct=form_of("CONSTRUCT { ?x <urn:p> ?x }"))
    for form in (LineFormat.ANSWERS_CSV, LineFormat.ANSWERS_TSV):
        with pytest.raises(UsageError, match="triples of a CONSTRUCT cannot be written"):
            query_lines(found, form)


def test_triples_of_one_answer_are_one_element() -> None:
    """As `present` and `as_statements` write them: a graph name shows what belongs together."""
    found = SolutionColumns([4], [5], ["+"], {"x": ["<urn:a>"]}, ["n"], None)
    one = replace(found, construct=form_of("CONSTRUCT { ?x <urn:p> ?x }"))
    assert query_lines(one, LineFormat.TIMED_LINES) == ["5 <urn:a> <urn:p> <urn:a> ."]
    two = replace(found, construct=form_of("CONSTRUCT { ?x <urn:p> ?x . ?x <urn:q> ?x }"))
    first, second = query_lines(two, LineFormat.TIMED_LINES)
    assert first.split()[-2] == second.split()[-2]
    assert first.split()[-2].startswith("_:a")
