"""Triple patterns as column expressions: they find which tests each statement passes.

A statement that passes a test becomes one row, with only the terms that the query binds. Shards
have to know how far time has come in a stream even if nothing matches. So a statement that matches
nothing becomes a row if its time is the earliest, or about the latest, of its task so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import functions as F

from quadweir import rows, spelling
from quadweir.plan.matchtests import TERMS, Matching, MatchTest, StatementTerm
from quadweir.runtime.match.bits import BITS, REPORTS_TIME, STREAM, MatchBits, shard_by
from quadweir.runtime.match.columns import may_hold
from quadweir.runtime.match.edges import is_edge
from quadweir.runtime.match.entail import CARRIED, follows, with_consequences
from quadweir.runtime.match.rowform import HASH, VALUES, stream_numbers
from quadweir.runtime.wire.deadletters import LETTER, letter
from quadweir.sources.labels import stream_prefix
from quadweir.terms import Variable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBER: Final = "stream_number"

_NAMES: Final = rows.TERMS[:TERMS]
_TRIPLE: Final = _NAMES[:3]


Asked: TypeAlias = Mapping[Variable, "Callable[[Column], Column]"]
"""For parameters of templates, whether a term is asked for by some query."""
NOTHING_ASKED: Final[Asked] = {}


def match_statements(
    statements: DataFrame, matching: Matching, shards: int, asked: Asked = NOTHING_ASKED
) -> DataFrame:
    """Return the statements that pass a test, or that report how far time has come.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`. Rows that have a reason as well are dead
            letters, and leave as such.
        matching: what statements are tested for.
        shards: how many shards there are.
        asked: tests of parameters; matches are not dropped for parameters without one.

    Returns:
        Rows with event time and position, and with the bits of the tests that a statement passed,
        of its stream and of its shards. A row that passed a test has the terms that are bound or
        sharded by.
    """
    streams = stream_numbers(matching)
    # Rows of other streams are already left out. END is compared first: its short name differs from
    # others in length, which is cheap to compare, and Spark computes the number several times.
    first, *others = [*enumerate(streams)][::-1]
    number = F.lit(others[0][0]) if others else F.lit(first[0])
    for place, stream in [*others[1:], first]:
        number = F.when(F.col(rows.STREAM) == stream, F.lit(place)).otherwise(number)
    # A row without a triple reports how far time has come.
    is_triple = F.col(rows.PREDICATE).isNotNull()
    nothing = F.lit(0).cast("bigint")
    bits = MatchBits.of(matching.wanted, streams=len(streams), shards=shards)
    tests = [matching.wanted[at : at + BITS] for at in range(0, len(matching.wanted), BITS)]
    names = bits.names[: len(tests)]
    is_read = F.col(rows.STREAM).isin(*streams)
    letters, kept = [], [~is_triple]
    if rows.REASON in statements.columns:
        letters = [LETTER]
        is_read = is_read | F.col(rows.REASON).isNotNull()
        statements = statements.withColumn(LETTER, letter())
        kept.append(F.col(LETTER).isNotNull())
    fixed = not statements.isStreaming
    is_of = {stream: number == place for place, stream in enumerate(streams)}
    passed = [
        F.when(is_triple, _passed(each, is_of, asked, fixed=fixed)).otherwise(nothing).alias(name)
        for each, name in zip(tests, names, strict=True)
    ]
    edge = is_edge(
        statements.sparkSession,
        F.col(_NUMBER),
        F.col(rows.EVENT_TIME),
        numbers=len(streams),
        # If the query reports when windows close, answers depend on the last of all elements. If
        # not, only the time when answers appear depends on it.
        exact=matching.exact_times,
    )
    # The edge is tested last: a row that passed a test carries its time anyway, and the time of a
    # row that is no statement does not count. The edge remembers rows, so Spark does not move the
    # filter to a place where it would compute all of this again.
    tested = (
        with_consequences(statements.where(is_read), matching)
        .select(number.alias(_NUMBER), "*", *passed)
        .where(reduce(or_, [*(F.col(name) != 0 for name in names), *kept, edge]))
    )

    def some(wanted: Iterable[bool]) -> Column | None:
        """Return whether a statement passed one of these tests; None if there are none."""
        found = [
            F.col(name).bitwiseAND(F.lit(mask).cast("bigint")) != 0
            for name, mask in bits.masks(wanted).items()
        ]
        return reduce(or_, found) if found else None

    terms = []
    for place, name in enumerate(VALUES):
        is_needed = some(place in each.needed for each in matching.wanted)
        if is_needed is not None:
            terms.append(F.when(is_needed, _scoped(place, streams)).alias(name))
    heard = some(bool(each.elements) and each.grid is None for each in matching.wanted)
    if heard is not None:
        # Never NULL: a column of integers with a NULL would become floats.
        terms.append(F.when(heard, F.xxhash64(*_TRIPLE)).otherwise(nothing).alias(HASH))
    fields = {REPORTS_TIME: ~is_triple, STREAM: F.col(_NUMBER)}
    for key in {each.key for each in matching.wanted if each.key is not None and shards > 1}:
        term = F.col(VALUES[key]) if isinstance(key, int) else F.lit(key)
        is_sent = some(each.key == key for each in matching.wanted)
        shard = F.pmod(F.xxhash64(term), F.lit(shards))
        if is_sent is not None:
            fields[shard_by(key)] = F.when(is_sent, shard).otherwise(nothing)
    kept_names = [rows.EVENT_TIME, rows.POSITION, *letters]
    bound = tested.select(*kept_names, _NUMBER, rows.PREDICATE, *names, *terms)
    words = bits.written([F.col(name) for name in names], fields)
    return bound.select(
        *kept_names, *words, *(each for each in (*VALUES, HASH) if each in bound.columns)
    )


def _scoped(place: int, streams: tuple[str, ...]) -> Column:
    """Return a term; a blank node gets the prefix of its stream."""
    term = F.col(_NAMES[place])
    if place == 1:
        return term
    prefixes = F.array(*(F.lit(stream_prefix(stream)) for stream in streams))
    prefix = F.get(prefixes, F.col(_NUMBER))
    if place != 2:
        named = F.concat(F.lit("_:"), prefix, F.substr(term, F.lit(3)))
        return F.when(term.startswith("_:"), named).otherwise(term)
    return spelling.with_labels(term, prefix)


def _passed(
    tests: Sequence[MatchTest], is_of: Mapping[str, Column], asked: Asked, *, fixed: bool
) -> Column:
    """Return the tests that a statement passes, as the bits of a number.

    A test that needs one predicate is computed only for statements with this predicate. This
    includes ways of entailment that hold for one predicate only, such as those by a class.

    Args:
        tests: the tests.
        is_of: for each stream, whether a statement belongs to it.
        asked: tests of parameters.
        fixed: whether static data stays as it is. If not, it may be reloaded while windows still
            hold a statement, so a statement is kept even if no static data joins with it now.
    """
    named: dict[str, list[tuple[int, MatchTest]]] = {}
    other = []
    for at, test in enumerate(tests):
        predicates = {test.constants[1]} if test.way is None else test.way.predicates
        if len(predicates) > 1 or None in predicates:
            other.append((at, test))
        else:
            named.setdefault(str(*predicates), []).append((at, test))
    found = F.lit(0).cast("bigint")
    for predicate, these in named.items():
        found = F.when(
            F.col(rows.PREDICATE) == F.lit(predicate), _bits(these, is_of, asked, fixed=fixed)
        ).otherwise(found)
    return found.bitwiseOR(_bits(other, is_of, asked, fixed=fixed)) if other else found


def _bits(
    tests: Iterable[tuple[int, MatchTest]],
    is_of: Mapping[str, Column],
    asked: Asked,
    *,
    fixed: bool,
) -> Column:
    nothing = F.lit(0).cast("bigint")
    found = [
        F.when(
            condition_of(test, is_of[test.stream], asked, fixed=fixed),
            F.lit(1 << at).cast("bigint"),
        ).otherwise(nothing)
        for at, test in tests
    ]
    return reduce(lambda one, more: one.bitwiseOR(more), found)


def condition_of(
    test: MatchTest, is_of_stream: Column, asked: Asked = NOTHING_ASKED, *, fixed: bool
) -> Column:
    """Return whether a statement passes a test: its constants, and its terms that occur twice."""
    conditions = [is_of_stream]
    if test.way is not None:
        conditions.append(follows(test.way))
    if test.elements or not test.follows:
        conditions.append(F.col(CARRIED))
    if test.is_named:
        conditions.append(F.col(rows.GRAPH).isNotNull())
    seen = [_part(part) for part in test.view]
    for place, constant in enumerate(test.constants):
        # The view itself is known to hold, and the predicate was compared before.
        is_known = test.view[place] == str(constant) or (place == 1 and test.way is None)
        if constant is not None and not is_known:
            conditions.append(seen[place] == F.lit(str(constant)))
    conditions += [seen[one] == seen[other] for one, other in test.equal]
    of_use = _of_use(test, asked, fixed=fixed)
    return reduce(and_, [*conditions, of_use] if of_use is not None else conditions)


def _part(part: StatementTerm) -> Column:
    return F.col(_NAMES[part]) if isinstance(part, int) else F.lit(part)


def _of_use(test: MatchTest, asked: Asked, *, fixed: bool) -> Column | None:
    """Return whether a match may change an answer; None if no column can decide it."""
    ways = []
    for bound, condition in test.conditions:
        terms = {variable: _part(part) for variable, part in bound}
        joined = condition.values if fixed else ()
        parts = [terms[variable].isin(*values) for variable, values in joined]
        parts += [
            asked[parameter](terms[variable])
            for variable, parameter in condition.parameters
            if parameter in asked
        ]
        parts += [
            found
            for found in (may_hold(each, terms) for each in condition.expressions)
            if found is not None
        ]
        if not parts:
            return None
        ways.append(reduce(and_, parts))
    return reduce(or_, ways) if ways else None
