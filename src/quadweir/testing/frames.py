"""Answers from Spark, in the form of the oracle's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quadweir import rows
from quadweir.terms import IRI, BlankNode, Quad, parse_term
from quadweir.testing.answers import Answer


def answers_from_rows(found: Iterable[Any]) -> list[Answer]:
    """Read the rows of an answer frame (`RegisteredQuery.spelled_answers`)."""
    return [_answer(row) for row in found]


def _answer(row: Any) -> Answer:
    t, sign = row[rows.REPORT], row[rows.SIGN]
    if rows.TRIPLES in row:
        return Answer(t, sign, graph=frozenset(map(_quad, row[rows.TRIPLES])))
    bound = row[rows.BINDINGS].asDict()
    known = {name: parse_term(text) for name, text in bound.items() if text is not None}
    return Answer.of(t, sign, known)


def _quad(spelled: Any) -> Quad:
    *triple, name = spelled
    subject, predicate, end = map(parse_term, triple)
    graph = None if name is None else parse_term(name)
    assert isinstance(subject, IRI | BlankNode)
    assert isinstance(predicate, IRI)
    assert graph is None or isinstance(graph, IRI | BlankNode)
    return Quad(subject, predicate, end, graph)
