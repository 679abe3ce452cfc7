"""DISTINCT against recomputation, at every instant."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from changing_rows import Change, Row, Rows, follow, histories
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.relation import Operator
from quadweir.terms import IRI, Literal, Variable

TERM = st.sampled_from([None, IRI("urn:a"), IRI("urn:b"), Literal("a")])
ROWS = histories(st.tuples(TERM, TERM, st.just(Literal("apart"))))


def _make(dictionary: Dictionary) -> tuple[Rows, Operator]:
    rows = Rows(["x", "y", "z"], dictionary)
    return rows, Distinct(rows, (Variable("y"), Variable("x")), dictionary)


def _model(rows: list[Row]) -> Counter[Row]:
    return Counter({(y, x) for x, y, _ in rows})


@given(changes=ROWS, size=st.sampled_from([1, 2, 5, 100]), restart=st.booleans())
def test_each_row_once(changes: list[Change], size: int, restart: bool) -> None:
    operator, dictionary = follow(_make, changes, _model, size, restart=restart)
    assert operator.held() == 0
    assert len(dictionary) == 0


def test_what_goes_and_comes_back_in_an_instant_is_no_change() -> None:
    a = (IRI("urn:a"), None, None)
    dictionary = Dictionary()
    rows, operator = _make(dictionary)
    history: list[Change] = [(1, 1, 0, a), (2, -1, 0, a), (2, 1, 1, a), (3, 1, 2, a), (3, -1, 2, a)]
    assert operator.step([rows.feed(history)]).t.tolist() == [1]
