"""Solutions kept in order give the reports that are made of all solutions again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.kernel.answers import Whole
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.outputs import _modified, output_of
from quadweir.kernel.ranked import Ranked, Ranking
from quadweir.kernel.relation import Delta
from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import plan_query
from quadweir.syntax import parse

TERMS = [
    "",
    *(f'"{each}"^^<http://www.w3.org/2001/XMLSchema#integer>' for each in (-3, 0, 2, 10, 10**30)),
    *(f'"{each}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for each in ("2.0", "0.1", "-7")),
    *(f'"{each}"^^<http://www.w3.org/2001/XMLSchema#double>' for each in ("NaN", "2.0E0", "INF")),
    '"02"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"a"',
    '"a"@en',
    '"b"',
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    '"2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    '"PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>',
    '"x"^^<urn:d>',
    "_:n",
    "_:m",
    "<urn:a>",
    "<urn:b>",
    "<<( <urn:a> <urn:b> <urn:c> )>>",
]
TAILS = [
    "ORDER BY DESC(?b) ?a LIMIT 2",
    "ORDER BY ?a DESC(?b) LIMIT 3 OFFSET 1",
    "ORDER BY DESC(?a)",
    "LIMIT 2",
    "OFFSET 1",
    "ORDER BY ?c LIMIT 1",
    "ORDER BY ?b LIMIT 0",
    "ORDER BY DESC(?b) OFFSET 2",
]
HEADS = ["SELECT ?a ?b", "SELECT ?b ?a ?c", "SELECT ?a", "SELECT *"]


class _Table:
    """An operator whose rows are given."""

    def __init__(self, cells: np.ndarray) -> None:
        self.cells = cells

    def columns(self, variables: tuple, rows: np.ndarray) -> np.ndarray:
        return self.cells[rows][:, : len(variables)]


def _report(head: str, tail: str, output: str) -> Any:
    text = f"""REGISTER {output} <urn:o> AS {head} FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 5 s]
        WHERE {{ WINDOW <urn:w> {{ ?a ?b ?c }} }} {tail}"""
    return plan_query(optimize(parse(text)).query, streams=("urn:s",)).stages[-1].program


@st.composite
def _runs(draw: st.DrawFn) -> list[tuple[list[tuple[int, int, int]], list[int]]]:
    """Steps of changes (time, sign, solution), each with the reports in it."""
    steps, present, time = [], [], 0
    for _ in range(draw(st.integers(1, 4))):
        changes = []
        reports = []
        for _ in range(draw(st.integers(0, 8))):
            time += draw(st.integers(0, 2))
            if present and draw(st.booleans()):
                solution = present.pop(draw(st.integers(0, len(present) - 1)))
                changes.append((time, -1, solution))
            else:
                present.append(draw(st.integers(0, 7)))
                changes.append((time, 1, present[-1]))
            if draw(st.booleans()):
                reports.append(time)
        time += 1
        steps.append((changes, sorted(set(reports))))
    return steps


@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
@given(data=st.data())
def test_ranked_reports_are_those_made_as_a_whole(output: str, data: st.DataObject) -> None:
    head, tail = data.draw(st.sampled_from(HEADS)), data.draw(st.sampled_from(TAILS))
    program = _report(head, tail, output)
    query, report = program.query, program.report
    if not report.modifiers:
        return  # an order alone matters to nobody
    dictionary = Dictionary()
    numbers = dictionary.numbers(TERMS)
    dictionary.keep(numbers[numbers != 0])
    few = data.draw(st.lists(st.sampled_from(numbers.tolist()), min_size=1, max_size=5))
    solution = st.tuples(*[st.sampled_from(few)] * len(report.modified))
    cells = data.draw(st.lists(solution, min_size=8, max_size=8))
    root: Any = _Table(np.array(cells, dtype=np.int64))

    def whole() -> Whole:
        return Whole(
            (root, report.modified),
            lambda _, found: _modified(query, report, found, report.columns, dictionary),
            len(report.columns),
            report.output,
            dictionary,
        )

    ranked, slow = output_of(program, root, dictionary), whole()
    assert isinstance(ranked, Ranked)
    for changes, reports in data.draw(_runs()):
        if data.draw(st.booleans()):
            # A restart: what a snapshot has is enough.
            kept = ranked.arrays()
            ranked = output_of(program, root, dictionary)
            ranked.restore(kept)
        t, sign, row = np.array(changes, dtype=np.int64).reshape(-1, 3).T
        delta = Delta(t, sign, row, t)
        found = ranked.step(delta, np.array(reports, dtype=np.int64))
        wanted = slow.step(delta, np.array(reports, dtype=np.int64))
        assert found.t.tolist() == wanted.t.tolist()
        assert found.sign.tolist() == wanted.sign.tolist()
        assert found.values.tolist() == wanted.values.tolist()


@pytest.mark.parametrize(
    ("tail", "is_ranked"),
    [("ORDER BY ?a LIMIT 2", True), ("ORDER BY (?b + 1) LIMIT 2", False), ("LIMIT 1", True)],
)
def test_expressions_are_computed_again(tail: str, is_ranked: bool) -> None:
    program = _report("SELECT ?a ?b", tail, "ISTREAM")
    assert (Ranking.of(program.query, program.report) is not None) == is_ranked


def test_distinct_answers_above_an_order_are_made_again() -> None:
    program = _report("SELECT DISTINCT ?b", "ORDER BY ?a LIMIT 2", "ISTREAM")
    assert Ranking.of(program.query, program.report) is None


def test_a_change_behind_the_front_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _report("SELECT ?a", "ORDER BY ?a LIMIT 2", "ISTREAM")
    dictionary = Dictionary()
    texts = [f'"{each}"^^<http://www.w3.org/2001/XMLSchema#integer>' for each in range(100)]
    cells = np.zeros((100, 3), dtype=np.int64)
    cells[:, 0] = dictionary.numbers(texts)
    root: Any = _Table(cells)
    ranked = output_of(program, root, dictionary)
    looked = []
    front = Ranked._front
    monkeypatch.setattr(Ranked, "_front", lambda self: looked.append(1) or front(self))
    times = np.arange(100)
    delta = Delta(times, np.ones_like(times), times, times)
    assert len(ranked.step(delta, times).t) == 2
    assert len(looked) == 2
