"""Leaves out the quads of a mapping that no pattern of a query can match.

What is known of a term before any record is read is how its spelling begins and ends: a constant is
known whole, a template by its fixed ends, a literal by its quote and its datatype. A constant of a
pattern that differs from them can never be equal.

A record whose quads are all left out still says how far time has come (S4), and that its stream has
an element. So one statement that no pattern can match, the *witness*, stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from operator import and_, or_
from typing import TYPE_CHECKING, Final, TypeAlias, final

from pyspark.sql import functions as F

from quadweir.entailment.table import End, Table
from quadweir.entailment.ways import Way
from quadweir.mapping.quads import Entry
from quadweir.mapping.values import ReferenceValues, Terms, put_together
from quadweir.plan.matchtests import MatchTest

if TYPE_CHECKING:
    from pyspark.sql import Column

MayMatch: TypeAlias = Callable[[Entry], bool]
WITNESS: Final = "<urn:x-quadweir:element>"
"""Subject, predicate and object of a witness are made of this name; no query asks for it."""


def may_match(tests: Sequence[MatchTest], table: Table | None) -> MayMatch:
    """Return whether a quad of a mapping can pass one of these tests.

    Args:
        tests: all tests of one stream.
        table: the consequences of statements, if there is a schema.
    """
    return lambda entry: any(_may_pass(entry, test, table) for test in tests)


def _may_pass(entry: Entry, test: MatchTest, table: Table | None) -> bool:
    # A witness is an element, too.
    if test.grid is not None:
        return False
    if test.is_named and entry.graph is None:
        return False
    if test.way is not None and not _may_follow(entry, test.way):
        return False
    if test.follows and table is not None and _may_imply(entry, table):
        return True
    for place, constant in enumerate(test.constants):
        seen = test.view[place]
        if constant is None or isinstance(seen, str):
            continue
        part = entry.parts[seen]
        if part is None or not may_equal(part, str(constant)):
            return False
    return True


def may_equal(terms: Terms, spelled: str) -> bool:
    """Return whether some record can make a term of this spelling."""
    if not terms.pieces:
        return True
    if terms.constant is not None:
        return terms.constant == spelled
    start = "".join(takewhile(_is_text, terms.pieces))  # type: ignore[arg-type]
    end = "".join([*takewhile(_is_text, reversed(terms.pieces))][::-1])  # type: ignore[arg-type]
    is_long = len(spelled) >= len(start) + len(end)
    return is_long and spelled.startswith(start) and spelled.endswith(end)


def _is_text(piece: object) -> bool:
    return isinstance(piece, str)


def _may_be_one_of(terms: Terms, several: Iterable[object]) -> bool:
    return any(may_equal(terms, str(one)) for one in several)


def _may_follow(entry: Entry, way: Way) -> bool:
    """Return whether a quad can have a consequence by this way."""
    if not _may_be_one_of(entry.predicate, way.predicates):
        return False
    if way.derived.subject is End.OBJECT and _is_literal(entry.object):
        return False
    of_class = entry.subject if way.turned else entry.object
    return way.classes is None or _may_be_one_of(of_class, way.classes)


def _may_imply(entry: Entry, table: Table) -> bool:
    """Return whether a quad can have any consequence."""
    if _may_be_one_of(entry.predicate, table.predicates):
        return True
    for typing, of_class in (
        (table.typing, entry.object),
        (table.turned_typing, entry.subject),
    ):
        if _may_be_one_of(entry.predicate, typing) and _may_be_one_of(of_class, table.classes):
            return True
    return False


def _is_literal(terms: Terms) -> bool:
    first = terms.pieces[0] if terms.pieces else None
    return isinstance(first, str) and first.startswith('"')


# -- the witness -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Witness:
    """Which records make only quads that are left out.

    Attributes:
        made: whether a record makes some quad that is left out, as far as its values say.
        others: quads that are left out, for which only their terms say whether they are made.
        kept: the quads that are made.
    """

    made: Column
    others: tuple[Entry, ...]
    kept: tuple[Entry, ...]

    @staticmethod
    def of(
        kept: Sequence[Entry],
        left_out: Sequence[Entry],
        values: Callable[[str], ReferenceValues],
    ) -> Witness | None:
        """Return it; None if each record that makes some quad makes one that is kept.

        Args:
            kept: the quads that are made.
            left_out: the others.
            values: returns the values of a reference.
        """
        known = [needs for entry in kept if (needs := _needs(entry)) is not None]
        alone = [
            (entry, needs)
            for entry in left_out
            if (needs := _needs(entry)) is None or not any(one <= needs for one in known)
        ]
        if not alone:
            return None
        least = {needs for _, needs in alone if needs is not None}
        # A record that has values for one has them for all that need less.
        least = {needs for needs in least if not any(other < needs for other in least)}
        some = [_have(needs, values) for needs in sorted(least, key=sorted)]
        made = reduce(or_, some, F.lit(False))
        return Witness(made, tuple(e for e, needs in alone if needs is None), tuple(kept))

    def is_needed(self, made: Column) -> Column:
        """Return whether a record needs a witness.

        Args:
            made: the column with what `self.made` says.
        """
        some = reduce(or_, map(_is_there, self.others), made)
        return reduce(and_, [~_is_there(entry) for entry in self.kept], some)

    @staticmethod
    def entry(is_needed: Column) -> Entry:
        """Return the statement of records that make no other."""
        name = put_together(WITNESS)
        return Entry(Terms(F.when(is_needed, F.lit(WITNESS))), name, name, None)


def _needs(entry: Entry) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for part in entry.terms:
        needs = frozenset() if part.constant is not None else part.needs
        if needs is None:
            return None
        found |= needs
    return found


def _have(needs: Iterable[str], values: Callable[[str], ReferenceValues]) -> Column:
    """Return whether a record has values of all these references, never NULL."""
    found = [_is_some(values(reference).text()) for reference in sorted(needs)]
    return reduce(and_, found, F.lit(True))


def _is_there(entry: Entry) -> Column:
    found = [_is_some(part) for part in entry.terms if part.constant is None]
    return reduce(and_, found, F.lit(True))


def _is_some(terms: Terms) -> Column:
    """Return whether there is a term, never NULL."""
    if terms.many:
        return F.coalesce(F.exists(terms.column, lambda one: one.isNotNull()), F.lit(False))
    found = terms.column.isNotNull()
    if terms.several is None:
        return found
    some = F.exists(terms.several, lambda one: one.isNotNull())
    return found | F.coalesce(some, F.lit(False))
