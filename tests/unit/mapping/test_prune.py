"""Which quads of a mapping may match a pattern, before any record is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.algebra.patterns import TriplePattern
from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.entailment.table import End, Table
from quadweir.mapping.prune import may_equal, may_match
from quadweir.mapping.quads import Entry
from quadweir.mapping.values import Terms
from quadweir.plan.matchtests import MatchTest, find_match_tests
from quadweir.plan.nodes import Match, Source
from quadweir.terms import IRI, Literal, Term, Variable, parse_term

COLUMN: Any = object()
"""What stands for a column: nothing looks into it."""
S, P, O = Variable("s"), Variable("p"), Variable("o")  # noqa: E741


def term(*pieces: str | None) -> Terms:
    """A term of fixed texts and, for None, values of the record."""
    return Terms(COLUMN, pieces=tuple(COLUMN if each is None else each for each in pieces))


LANE = term("<http://e.org/lane/", None, ">")
UNKNOWN = Terms(COLUMN)
NUMBER = term('"', None, '"^^<http://www.w3.org/2001/XMLSchema#integer>')
ENGLISH = term('"', None, '"@en')


def entry(subject: Terms, predicate: str, obj: Terms | str, graph: str | None = None) -> Entry:
    return Entry(
        subject,
        term(predicate),
        term(obj) if isinstance(obj, str) else obj,
        term(graph) if graph is not None else None,
    )


def asked_of(*wanted: Term | None, is_named: bool = False) -> MatchTest:
    return MatchTest("urn:s", (*wanted, *[None] * (4 - len(wanted))), (), None, is_named=is_named)


@pytest.mark.parametrize(
    ("terms", "spelled", "may"),
    [
        (LANE, "<http://e.org/lane/1>", True),
        (LANE, "<http://e.org/lane/>", True),
        (LANE, "<http://e.org/lane", False),
        (LANE, "<http://e.org/car/1>", False),
        (LANE, '"1"', False),
        (NUMBER, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', True),
        (NUMBER, '"1"', False),
        (NUMBER, "<urn:a>", False),
        (ENGLISH, '"a"@en', True),
        (ENGLISH, '"a"@en-us', False),
        (term("<urn:a>"), "<urn:a>", True),
        (term("<urn:a>"), "<urn:b>", False),
        (UNKNOWN, '"anything"', True),
        # Texts that follow one another are one.
        (term("<", "urn:is-", None, "/x", ">"), "<urn:speed>", False),
        (term("<", "urn:is-", None, "/x", ">"), "<urn:is-a/x>", True),
        (term("<", "urn:is-", None, "/x", ">"), "<urn:is-a/y>", False),
        # The fixed ends must not overlap.
        (term("<urn:aba", None, "aba>"), "<urn:aba>", False),
    ],
)
def test_a_constant_that_differs_at_its_ends_is_never_equal(
    terms: Terms, spelled: str, may: bool
) -> None:
    assert may_equal(terms, spelled) == may


@given(
    pieces=st.lists(st.none() | st.text("ab<>", max_size=2), min_size=1, max_size=4),
    values=st.lists(st.text("ab<>", max_size=2), min_size=4, max_size=4),
    other=st.text("ab<>", max_size=6),
)
def test_what_a_record_makes_may_be_equal(
    pieces: list[str | None], values: list[str], other: str
) -> None:
    made = "".join(
        value if piece is None else piece for piece, value in zip(pieces, values, strict=False)
    )
    assert may_equal(term(*pieces), made)
    if None not in pieces:
        assert may_equal(term(*pieces), other) == (other == made)


@pytest.mark.parametrize(
    ("wanted", "may"),
    [
        (asked_of(), True),
        (asked_of(None, IRI("urn:p")), True),
        (asked_of(None, IRI("urn:q")), False),
        (asked_of(IRI("http://e.org/lane/7")), True),
        (asked_of(IRI("urn:x"), IRI("urn:p")), False),
        (asked_of(None, None, Literal("5")), False),
        (asked_of(None, None, None, IRI("urn:g")), True),
        (asked_of(None, None, None, IRI("urn:h")), False),
        (asked_of(is_named=True), True),
    ],
)
def test_patterns_without_entailment(wanted: MatchTest, may: bool) -> None:
    given_entry = entry(LANE, "<urn:p>", NUMBER, "<urn:g>")
    assert may_match([wanted], None)(given_entry) == may
    never = asked_of(IRI("urn:never"))
    assert may_match([never, wanted], None)(given_entry) == may
    assert not may_match([], None)(given_entry)


def test_the_default_graph_has_no_name() -> None:
    given_entry = entry(LANE, "<urn:p>", NUMBER)
    assert not may_match([asked_of(is_named=True)], None)(given_entry)
    assert not may_match([asked_of(None, None, None, IRI("urn:g"))], None)(given_entry)


CLASSES = [IRI(f"urn:C{number}") for number in range(3)]
PREDICATES = [IRI(f"urn:p{number}") for number in range(3)]
AXIOMS = st.one_of(
    st.builds(
        Axiom,
        st.sampled_from([AxiomKind.SUBCLASS]),
        st.sampled_from(CLASSES),
        st.sampled_from(CLASSES),
    ),
    st.builds(
        Axiom,
        st.sampled_from([AxiomKind.SUBPROPERTY, AxiomKind.INVERSE]),
        st.sampled_from(PREDICATES),
        st.sampled_from(PREDICATES),
    ),
    st.builds(
        Axiom,
        st.sampled_from([AxiomKind.DOMAIN, AxiomKind.RANGE]),
        st.sampled_from(PREDICATES),
        st.sampled_from(CLASSES),
    ),
)
SUBJECTS = {"<urn:a>": term("<urn:a>"), "<http://e.org/lane/1>": LANE, "_:b": UNKNOWN}
OBJECTS = {**SUBJECTS, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>': NUMBER}
OBJECTS |= {str(each): term(str(each)) for each in CLASSES}


@given(data=st.data())
def test_a_quad_with_a_consequence_that_matches_is_made(data: st.DataObject) -> None:
    """Of each statement all consequences are computed, and matched one by one."""
    axioms = data.draw(st.lists(AXIOMS, max_size=5, unique=True))
    table = Table.of(Schema(tuple(axioms)))
    predicate = data.draw(st.sampled_from([*PREDICATES, TYPE]))
    subject = data.draw(st.sampled_from(sorted(SUBJECTS)))
    obj = data.draw(st.sampled_from(sorted(OBJECTS)))
    if subject == "_:b":
        return
    made = entry(SUBJECTS[subject], str(predicate), OBJECTS[obj])
    triple = (parse_term(subject), predicate, parse_term(obj))
    pattern = TriplePattern(
        subject=data.draw(st.sampled_from([S, IRI("urn:a"), IRI("http://e.org/lane/1")])),
        predicate=data.draw(st.sampled_from([P, TYPE, *PREDICATES])),
        object=data.draw(st.sampled_from([O, IRI("urn:a"), *CLASSES])),
    )
    variables = tuple(
        each
        for each in (pattern.subject, pattern.predicate, pattern.object)
        if isinstance(each, Variable)
    )
    leaf = Match(Source(0, "urn:s", None), pattern, tuple(dict.fromkeys(variables)))
    tests = find_match_tests([leaf], [], {}, {}, {}, table)
    if any(_matches(pattern, each) for each in _closed(triple, table)):
        assert may_match(tests, table)(made)


def _closed(triple: tuple[Any, Any, Any], table: Table) -> list[tuple[Any, Any, Any]]:
    ends = {End.SUBJECT: triple[0], End.OBJECT: triple[2]}
    derived = list(table.predicates.get(triple[1], ()))
    if triple[1] in table.typing:
        derived += table.classes.get(triple[2], ())
    found = [triple]
    for each in derived:
        parts = (each.subject, each.predicate, each.object)
        found.append(tuple(ends.get(one, one) if isinstance(one, End) else one for one in parts))
    return [each for each in found if isinstance(each[0], IRI)]


def _matches(pattern: TriplePattern, triple: tuple[Any, Any, Any]) -> bool:
    asked = (pattern.subject, pattern.predicate, pattern.object)
    return all(
        isinstance(one, Variable) or one == got for one, got in zip(asked, triple, strict=True)
    )
