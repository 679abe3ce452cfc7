"""How statements match a triple pattern through their consequences.

Without entailment, a statement matches a pattern directly. With entailment there are more *ways*:
`?x rdf:type :Product` also matches statements about instances of :Laptop, and statements with a
predicate whose subjects are products. A way has sets of predicates and classes, which select
statements, and the triple that follows from each. If a pattern has too many ways, for example with
a variable for the class, all consequences of a statement are looked up by its predicate and class,
and each is matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, final

from quadweir.algebra.patterns import TriplePattern
from quadweir.entailment.schema import Class
from quadweir.entailment.table import Derived, End, Table
from quadweir.terms import IRI, Variable

_Key = TypeVar("_Key", IRI, Class)

MOST_WAYS: Final = 12
"""With more ways than this, looking up the consequences of a statement is cheaper."""


@final
@dataclass(frozen=True, slots=True)
class Way:
    """Statements of one kind, and the triple that follows from each.

    Attributes:
        predicates: The predicate of the statement is one of these.
        classes: Its object (its subject if `turned`) is one of these; None if any will do.
        turned: Whether the class is the subject of the statement.
        derived: The derived triple, in terms of the statement.
    """

    predicates: frozenset[IRI]
    classes: frozenset[Class] | None
    turned: bool
    derived: Derived


@final
@dataclass(frozen=True, slots=True)
class Ways:
    """All ways to match one pattern, except the direct one.

    Attributes:
        listed: The ways, one by one.
        looked_up: Whether there are so many ways that consequences are looked up instead.
    """

    listed: tuple[Way, ...]
    looked_up: bool = False


NO_WAYS: Final = Ways(())


def ways_of(pattern: TriplePattern, table: Table) -> Ways:
    """Find the ways to match a pattern.

    >>> from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
    >>> cat, animal = IRI("urn:cat"), IRI("urn:animal")
    >>> table = Table.of(Schema((Axiom(AxiomKind.SUBCLASS, cat, animal),)))
    >>> asked = TriplePattern(subject=Variable("x"), predicate=TYPE, object=animal)
    >>> [sorted(way.classes) for way in ways_of(asked, table).listed]
    [[IRI(value='urn:cat')]]
    """
    by_predicate = _grouped(pattern, table.predicates)
    by_class = _grouped(pattern, table.classes)
    turned = (
        _grouped(
            pattern,
            {one: tuple(d.turned() for d in found) for one, found in table.classes.items()},
        )
        if table.turned_typing
        else {}
    )
    if len(by_predicate) + len(by_class) + len(turned) > MOST_WAYS:
        return Ways((), looked_up=True)
    listed = [
        Way(frozenset(predicates), None, False, derived)
        for derived, predicates in by_predicate.items()
    ]
    listed += [
        Way(table.typing, frozenset(classes), False, derived)
        for derived, classes in by_class.items()
    ]
    listed += [
        Way(table.turned_typing, frozenset(classes), True, derived)
        for derived, classes in turned.items()
    ]
    return Ways(tuple(listed))


def fits(derived: Derived, pattern: TriplePattern) -> bool:
    """Whether some consequence of a statement can match a pattern."""
    return all(
        isinstance(asked, Variable) or isinstance(given, End) or asked == given
        for asked, given in (
            (pattern.subject, derived.subject),
            (pattern.predicate, derived.predicate),
            (pattern.object, derived.object),
        )
    )


def _grouped(
    pattern: TriplePattern, found: Mapping[_Key, Iterable[Derived]]
) -> dict[Derived, list[_Key]]:
    groups: dict[Derived, list[_Key]] = {}
    for key, all_of in found.items():
        for derived in all_of:
            if fits(derived, pattern):
                groups.setdefault(derived, []).append(key)
    return groups
