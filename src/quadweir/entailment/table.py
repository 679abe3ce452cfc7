"""The consequences of a statement, looked up by its predicate and by its class.

Every rule has one triple of data among its premises; the others are from the schema, which does not
change. So the consequences of a statement can be computed in advance: from its predicate alone, and
from its class if its predicate is `rdf:type`. The closure is computed here once, step by step from
the new consequences of the step before. It is flattened: a statement leads directly to its
consequences, over any number of classes and properties in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, TypeAlias, final

from quadweir.entailment.needs import EVERYTHING, SchemaNeeds
from quadweir.entailment.schema import TYPE, Class, Schema
from quadweir.errors import LimitError
from quadweir.terms import IRI, BlankNode, Quad, Term

MOST_ENTRIES: Final = 5_000_000
"""A chain of n classes has n * n / 2 consequences; more than this are refused."""


class End(Enum):
    """An end of the statement with the consequence."""

    SUBJECT = "s"
    OBJECT = "o"


Atom: TypeAlias = End | Class


@final
@dataclass(frozen=True, slots=True)
class Derived:
    """A triple that follows from a statement; its ends are those of the statement, or fixed.

    In consequences of a class, `End.SUBJECT` is the instance.

    >>> Derived(End.OBJECT, IRI("urn:likedBy"), End.SUBJECT).turned()
    Derived(subject=<End.SUBJECT: 's'>, predicate=IRI(value='urn:likedBy'), object=<End.OBJECT: 'o'>)
    """

    subject: Atom
    predicate: IRI
    object: Atom

    def turned(self) -> Derived:
        """The same for a statement read from its object to its subject."""
        return Derived(_other(self.subject), self.predicate, _other(self.object))

    def of(self, subject: Term, end: Term) -> Quad | None:
        """Fill in the ends of a statement; None if a literal or triple term would be a subject."""
        first = _fill(self.subject, subject, end)
        if not isinstance(first, IRI | BlankNode):
            return None
        return Quad(first, self.predicate, _fill(self.object, subject, end))


def _other(atom: Atom) -> Atom:
    match atom:
        case End.SUBJECT:
            return End.OBJECT
        case End.OBJECT:
            return End.SUBJECT
        case _:
            return atom


def _fill(atom: Atom, subject: Term, end: Term) -> Term:
    match atom:
        case End.SUBJECT:
            return subject
        case End.OBJECT:
            return end
        case _:
            return atom


_ITSELF: Final = Derived(End.SUBJECT, TYPE, End.OBJECT)
_TURNED: Final = Derived(End.OBJECT, TYPE, End.SUBJECT)


@final
@dataclass(frozen=True)
class Table:
    """The consequences of a statement, by its predicate and by its class.

    Attributes:
        predicates: The consequences of a statement with this predicate and any ends.
        classes: The consequences of being an instance of this class.
    """

    predicates: Mapping[IRI, tuple[Derived, ...]]
    classes: Mapping[Class, tuple[Derived, ...]]

    @staticmethod
    def of(schema: Schema, needs: SchemaNeeds = EVERYTHING) -> Table:
        """The closure of a schema, reduced to the consequences that are used.

        Raises:
            LimitError: it has too many consequences to be held.
        """
        sources = (schema.superproperties, schema.inverses, schema.domains, schema.ranges)
        is_special = any(TYPE in source for source in sources)
        kept = _Kept(needs, types=is_special or needs.some_class())
        predicates = {}
        for predicate in sorted({each for source in sources for each in source}):
            seed = Derived(End.SUBJECT, predicate, End.OBJECT)
            found = kept.of(seed, closure(schema, seed))
            if found:
                predicates[predicate] = found
        down = None if is_special else needs.classes
        return Table(predicates, dict(_classes(schema, down, kept)))

    @cached_property
    def typing(self) -> frozenset[IRI]:
        """The predicates whose subjects have a known class."""
        return frozenset((TYPE, *(p for p, all_of in self.predicates.items() if _ITSELF in all_of)))

    @cached_property
    def turned_typing(self) -> frozenset[IRI]:
        """The predicates whose subjects are classes of their objects."""
        return frozenset(p for p, all_of in self.predicates.items() if _TURNED in all_of)

    def consequences(self, quad: Quad) -> list[Quad]:
        """The consequences of a triple, each once, without the triple itself; the graph is
        ignored.
        """
        subject, predicate, end = quad.subject, quad.predicate, quad.object
        found: dict[Quad | None, None] = {}
        for derived in self.predicates.get(predicate, ()):
            found[derived.of(subject, end)] = None
        if predicate in self.typing and isinstance(end, IRI | BlankNode):
            for derived in self.classes.get(end, ()):
                found[derived.of(subject, end)] = None
        if predicate in self.turned_typing:
            for derived in self.classes.get(subject, ()):
                found[derived.of(end, subject)] = None
        itself = Quad(subject, predicate, end)
        return [each for each in found if each is not None and each != itself]


def closure(schema: Schema, seed: Derived) -> Iterator[Derived]:
    """A triple and its consequences, each once, also with cycles."""
    seen = {seed}
    new = [seed]
    while new:
        step = new
        new = []
        for each in step:
            yield each
            for following in steps(schema, each):
                if following not in seen:
                    seen.add(following)
                    new.append(following)


def steps(schema: Schema, each: Derived) -> Iterator[Derived]:
    """Apply every rule once to a triple."""
    for above in schema.superproperties.get(each.predicate, ()):
        yield Derived(each.subject, above, each.object)
    for inverse in schema.inverses.get(each.predicate, ()):
        yield Derived(each.object, inverse, each.subject)
    for of_subject in schema.domains.get(each.predicate, ()):
        yield Derived(each.subject, TYPE, of_subject)
    for of_object in schema.ranges.get(each.predicate, ()):
        yield Derived(each.object, TYPE, of_object)
    if each.predicate == TYPE and not isinstance(each.object, End):
        for above_class in schema.superclasses.get(each.object, ()):
            yield Derived(each.subject, TYPE, above_class)


class _Kept:
    """Selects the consequences that are used, and counts them; `types` also selects other
    classes.
    """

    def __init__(self, needs: SchemaNeeds, *, types: bool) -> None:
        self._needs = needs
        self._types = types
        self._count = 0

    def of(self, seed: Derived, found: Iterable[Derived]) -> tuple[Derived, ...]:
        kept = []
        for each in found:
            if each != seed and self._is_needed(each):
                kept.append(each)
                self._count += 1
            if self._count > MOST_ENTRIES:
                raise LimitError(
                    f"the schema has more than {MOST_ENTRIES:,} consequences",
                    hint="Ask for classes and predicates by name, or take a smaller schema.",
                )
        return tuple(kept)

    def _is_needed(self, each: Derived) -> bool:
        if each.predicate != TYPE:
            return self._needs.predicate(each.predicate)
        if isinstance(each.object, End):
            return self._types
        return self._needs.a_class(each.object)


def _classes(
    schema: Schema, asked: frozenset[Class] | None, kept: _Kept
) -> Iterator[tuple[Class, tuple[Derived, ...]]]:
    """The consequences of each class; if only some classes are used, only their subclasses."""
    if asked is None:
        for one in schema.classes:
            seed = Derived(End.SUBJECT, TYPE, one)
            found = kept.of(seed, closure(schema, seed))
            if found:
                yield one, found
        return
    # Few classes are used: search downwards from them.
    above: dict[Class, list[Derived]] = {}
    below = _downwards(schema.superclasses)
    for wanted in sorted(asked, key=str):
        derived = Derived(End.SUBJECT, TYPE, wanted)
        seen: set[Class] = {wanted}
        waiting: list[Class] = [wanted]
        while waiting:
            for one in below.get(waiting.pop(), ()):
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
                    above.setdefault(one, []).extend(kept.of(_ITSELF, (derived,)))
    yield from (
        (one, tuple(found)) for one, found in sorted(above.items(), key=lambda p: str(p[0]))
    )


def _downwards(superclasses: Mapping[Class, tuple[Class, ...]]) -> dict[Class, list[Class]]:
    found: dict[Class, list[Class]] = {}
    for one, above in superclasses.items():
        for each in above:
            found.setdefault(each, []).append(one)
    return found
