"""Shapes: what queries have in common that differ only in constants and window lengths.

Paper 004 shares one join among queries that differ in their windows, and uses an index of constants
to find which of many triple patterns a triple matches. A shape is a query without both: constants
are parameters, and windows are open, so that each member brings its own lengths. It does not depend
on any member, so members come and go without a new plan.

A query is shared as far as its answers stay those that it gives alone. `shape_of` tries in turn:
constants and lengths of its own, and members that join at any time; only constants of its own;
neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, final

from quadweir.algebra.analyze import subpatterns
from quadweir.algebra.patterns import Pattern, WindowPattern
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    QueryForm,
    SelectForm,
)
from quadweir.algebra.render import render
from quadweir.algebra.traverse import rewrite_patterns
from quadweir.algebra.windows import Scope, TimeScope
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.program import Program, program_of
from quadweir.plan.template import QueryTemplate, TemplateMember
from quadweir.sharing.parameters import Parametrizer
from quadweir.sharing.renaming import with_plain_variables
from quadweir.terms import IRI, Ground, Variable

OPEN_MS: Final = 1
"""The length of open windows in the query of a shape; members say what it is."""
MOST_ROWS: Final = 5_000_000
"""A static pattern with more solutions keeps its constants: each shard has all of them in memory."""
_LONGEST_MS: Final = 2**39
"""Windows of 17 years and more are not open: the router sorts by lengths in 40 bits."""


@final
@dataclass(frozen=True, eq=False)
class QueryShape:
    """What the queries of one template have in common.

    Two shapes are equal if their names are.

    Attributes:
        query: The query with parameters; its open windows have the length `OPEN_MS`.
        parameters: The variables in place of constants.
        windows: The places of the open windows.
        one_since: Whether all members must have joined at the same instant.
        reason: Why no more is shared; empty if all is.
    """

    query: ContinuousQuery
    parameters: tuple[Variable, ...]
    windows: tuple[int, ...]
    one_since: bool
    reason: str

    @cached_property
    def name(self) -> str:
        """The SHA-256 of what it is, in hexadecimal digits; the same in every process."""
        parts = (render(self.query), *map(str, self.parameters), f"{self.windows} {self.one_since}")
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryShape) and (self is other or self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)


class Shaped(NamedTuple):
    """A query as a shape, and what is its own: constants for the parameters, lengths of windows."""

    shape: QueryShape
    constants: tuple[Ground, ...]
    ranges: tuple[int, ...]

    def member(self, number: int, since: int) -> TemplateMember:
        """The query as a member of its shape's template."""
        return TemplateMember(number, self.constants, self.ranges, since)


class _Verdict(NamedTuple):
    """Why members would give other answers than alone, and why sharing would cost too much."""

    reason: str
    too_large: str


@final
@dataclass
class Shapes:
    """Finds the shapes of queries over the same streams and static data.

    What can be shared is found out once for each shape, by planning it.

    Args:
        streams: All streams; only windows over a stream variable need them.
        facts: Known facts about static data.
    """

    streams: Sequence[str] = ()
    facts: StaticFacts = NOTHING_KNOWN
    _verdicts: dict[tuple[ContinuousQuery, tuple[Variable, ...], bool], _Verdict] = field(
        default_factory=dict
    )
    _shapes: dict[ContinuousQuery, QueryShape] = field(default_factory=dict)

    def of(self, query: ContinuousQuery) -> Shaped:
        """The shape of an optimised query. Its name does not matter."""
        plain = replace(_with_plain_names(query), form=columns_of(query))
        plain = with_plain_variables(plain)
        open_windows = _open_windows(plain)
        closed = _with_ranges(plain, dict.fromkeys(open_windows, OPEN_MS))
        ranges = tuple(_range(plain.windows[place].scope) for place in open_windows)
        reasons = []
        for pattern, parameters in self._patterns(plain):
            named = tuple(parameters.values())
            shared = replace(closed, pattern=pattern)
            verdict = self._verdict(shared, named, open_windows)
            reasons += [each for each in verdict if each]
            if verdict.too_large:
                continue
            if not verdict.reason:
                shape = self._shape(shared, named, open_windows, "; ".join(reasons))
                return Shaped(shape, tuple(parameters), ranges)
            one = replace(plain, pattern=pattern)
            if parameters and not self._verdict(one, named, None).reason:
                shape = self._shape(one, named, None, "; ".join(reasons))
                return Shaped(shape, tuple(parameters), ())
        return Shaped(self._shape(plain, (), None, "; ".join(dict.fromkeys(reasons))), (), ())

    def _patterns(self, query: ContinuousQuery) -> Iterator[tuple[Pattern, dict[Ground, Variable]]]:
        """The pattern of a query with parameters, as many as there can be first."""
        if isinstance(query.form, AskForm | DescribeForm):
            yield query.pattern, {}
            return
        before = None
        for static in (True, False):
            parametrizer = Parametrizer(query, static=static)
            pattern = parametrizer.pattern()
            if parametrizer.found != before:
                yield pattern, parametrizer.found
            before = parametrizer.found

    def _verdict(
        self,
        query: ContinuousQuery,
        parameters: tuple[Variable, ...],
        windows: tuple[int, ...] | None,
    ) -> _Verdict:
        """Whether the members of a template answer as alone, and at what cost.

        Args:
            query: The query with parameters.
            parameters: Those.
            windows: The open windows; None if members join at one instant and have equal windows.
        """
        key = (query, parameters, windows is not None)
        if key not in self._verdicts:
            program = self._program(query, parameters, windows)
            own = frozenset(parameters)
            rows = max(
                (
                    self.facts.counts.get(each.query, 0)
                    for each in program.static
                    if own & frozenset(each.variables)
                ),
                default=0,
            )
            too_large = (
                f"a static pattern has {rows:,} solutions without its constants"
                if rows > MOST_ROWS
                else ""
            )
            self._verdicts[key] = _Verdict(program.why_not or program.not_shared, too_large)
        return self._verdicts[key]

    def _program(
        self,
        query: ContinuousQuery,
        parameters: tuple[Variable, ...],
        windows: tuple[int, ...] | None,
    ) -> Program:
        template = QueryTemplate(query, parameters, windows or (), windows is None)
        return program_of(query, streams=self.streams, facts=self.facts, template=template)

    def _shape(
        self,
        query: ContinuousQuery,
        parameters: tuple[Variable, ...],
        windows: tuple[int, ...] | None,
        reason: str,
    ) -> QueryShape:
        shape = self._shapes.get(query)
        if shape is None:
            shape = QueryShape(query, parameters, windows or (), windows is None, reason)
            self._shapes[query] = shape
        return shape


def shape_of(
    query: ContinuousQuery, *, streams: Sequence[str] = (), facts: StaticFacts = NOTHING_KNOWN
) -> Shaped:
    """The shape of an optimised query, with its own constants and window lengths.

    `Shapes` finds those of many queries faster.

    >>> from quadweir.syntax import parse
    >>> texts = ["SELECT ?x WHERE { STREAM <urn:s> [RANGE 1s] { <urn:%s> ?p ?x } }" % c for c in "ab"]
    >>> one, other = (shape_of(parse(text, dialect="cqels")) for text in texts)
    >>> one.shape == other.shape, str(one.constants[0]), str(other.constants[0]), one.ranges
    (True, '<urn:a>', '<urn:b>', (1000,))
    """
    return Shapes(streams, facts).of(query)


def template_of(shape: QueryShape, members: Iterable[TemplateMember] = ()) -> QueryTemplate:
    """The template of a shape, with its first members."""
    return QueryTemplate(
        shape.query, shape.parameters, shape.windows, shape.one_since, tuple(members)
    )


def columns_of(query: ContinuousQuery) -> QueryForm:
    """A CONSTRUCT needs the variables of its template; the triples are its own matter."""
    if not isinstance(query.form, ConstructForm):
        return query.form
    return SelectForm(variables=query.form.variables)


def _with_plain_names(query: ContinuousQuery) -> ContinuousQuery:
    """Name windows by their place, unless an answer could contain their names."""
    query = replace(query, name=None)
    read = [each for each in subpatterns(query.pattern) if isinstance(each, WindowPattern)]
    if any(isinstance(each.window, Variable) for each in read):
        return query
    names = {
        window.name: IRI(f"urn:quadweir:window:{place}")
        for place, window in enumerate(query.windows)
    }

    def rename(pattern: Pattern) -> Pattern:
        if isinstance(pattern, WindowPattern):
            assert isinstance(pattern.window, IRI)
            return replace(pattern, window=names.get(pattern.window, pattern.window))
        return pattern

    return replace(
        query,
        pattern=rewrite_patterns(query.pattern, rename),
        windows=tuple(replace(each, name=names[each.name]) for each in query.windows),
        default_graph_windows=tuple(names[each] for each in query.default_graph_windows),
    )


def _open_windows(query: ContinuousQuery) -> tuple[int, ...]:
    """The windows whose length may differ between members.

    The length of a window with `full` decides when it closes, and that of one that is looked at
    while it is open when it reports.
    """
    return tuple(place for place, each in enumerate(query.windows) if is_open(each.scope))


def is_open(scope: Scope) -> bool:
    """Whether the length of a window may differ between members."""
    return (
        isinstance(scope, TimeScope)
        and not (scope.full or scope.while_open)
        and scope.range_ms < _LONGEST_MS
    )


def _range(scope: Scope) -> int:
    assert isinstance(scope, TimeScope)
    return scope.range_ms


def _with_ranges(query: ContinuousQuery, ranges: dict[int, int]) -> ContinuousQuery:
    windows = tuple(
        replace(each, scope=replace(each.scope, range_ms=ranges[place]))
        if place in ranges and isinstance(each.scope, TimeScope)
        else each
        for place, each in enumerate(query.windows)
    )
    return replace(query, windows=windows)
