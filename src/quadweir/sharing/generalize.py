"""Turns queries into templates: different constants become parameters, and the longest windows are
used.

Paper 004 shares one join among queries that differ in their windows, and uses an index of constants
to find which of many triple patterns a triple matches. This module combines both: if queries differ
in a constant of a triple pattern, the constant becomes a variable, a *parameter*, that is carried
up to the answers. The answers of one query are then those whose parameters have its constants as
values.

This is correct if a parameter is bound in every solution, and if solutions with different values of
it never meet. So it is added to the projections of subqueries, to the keys of groups and, through
the projection, to the columns that DISTINCT compares. Constants elsewhere (on the right of OPTIONAL
and MINUS,
in EXISTS, UNION, under LIMIT, in a group without keys, at the ends of paths that repeat, in
expressions) stay constants; queries that differ there are not of one template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast, final

from quadweir.algebra.analyze import subpatterns
from quadweir.algebra.emptiness import is_closure
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    PathPattern,
    Pattern,
    PatternTerm,
    Project,
    Reduced,
    TriplePattern,
    WindowPattern,
)
from quadweir.algebra.query import (
    AskForm,
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
    QueryForm,
    SelectForm,
)
from quadweir.algebra.traverse import rewrite, rewrite_patterns
from quadweir.algebra.windows import TimeScope
from quadweir.terms import IRI, Ground, Variable

Fixed: TypeAlias = Ground
_Take: TypeAlias = Callable[[Fixed], PatternTerm]

_HOLE: Final = IRI("urn:quadweir:constant")


@final
@dataclass(frozen=True, slots=True)
class TemplateMember:
    """One query of a template.

    Attributes:
        number: its place among the given queries.
        constants: its values of the template's parameters.
        ranges: the lengths, in milliseconds, of the windows in which members differ.
    """

    number: int
    constants: tuple[Fixed, ...]
    ranges: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query that stands for many.

    Attributes:
        query: the query with parameters, over the longest windows.
        parameters: variables that no query text can spell.
        windows: the places of the windows in whose lengths members differ.
        members: at least one.
    """

    query: ContinuousQuery
    parameters: tuple[Variable, ...]
    windows: tuple[int, ...]
    members: tuple[TemplateMember, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is one unchanged query."""
        return len(self.members) == 1

    def constants(self, parameters: Sequence[Variable]) -> list[tuple[Fixed, ...]]:
        """The distinct combinations of values that members have for some parameters."""
        places = [self.parameters.index(each) for each in parameters]
        found = {tuple(member.constants[place] for place in places) for member in self.members}
        return sorted(found, key=lambda row: [str(term) for term in row])


def generalize(
    queries: Iterable[ContinuousQuery],
    *,
    elastic: Callable[[ContinuousQuery], bool] = lambda _: False,
) -> tuple[QueryTemplate, ...]:
    """The fewest templates that stand for all queries.

    Args:
        queries: The queries, preferably optimised. Their names are ignored.
        elastic: Returns whether a query may share with others whose time windows are longer: its
        answers can be selected from those over longer windows.

    >>> from quadweir.syntax import parse
    >>> texts = ["SELECT ?x WHERE { STREAM <urn:s> [RANGE 1s] { <urn:%s> ?p ?x } }" % c for c in "ab"]
    >>> (template,) = generalize(parse(text, dialect="cqels") for text in texts)
    >>> [[str(term) for term in member.constants] for member in template.members]
    [['<urn:a>'], ['<urn:b>']]
    """
    # Called once for each shape: neither constants nor lengths change the result.
    can_share: dict[ContinuousQuery, bool] = {}
    alike: dict[ContinuousQuery, list[tuple[int, tuple[Fixed, ...], tuple[int, ...]]]] = {}
    for number, query in enumerate(queries):
        named = _with_plain_names(query)
        holes: list[Fixed] = []

        def dig(term: Fixed, holes: list[Fixed] = holes) -> IRI:
            holes.append(term)
            return _HOLE

        pattern = named.pattern
        if not isinstance(query.form, AskForm | DescribeForm):
            pattern, _ = _map_constants(pattern, dig)
        exact = replace(named, pattern=pattern, form=_columns(query))
        shape, ranges = _without_ranges(exact)
        if shape not in can_share:
            can_share[shape] = elastic(query)
        if not can_share[shape]:
            shape, ranges = exact, ()
        alike.setdefault(shape, []).append((number, tuple(holes), ranges))
    return tuple(_template(shape, members) for shape, members in alike.items())


def _template(
    shape: ContinuousQuery, members: list[tuple[int, tuple[Fixed, ...], tuple[int, ...]]]
) -> QueryTemplate:
    # Constants that always change together are one parameter.
    parameters: dict[tuple[Fixed, ...], Variable] = {}
    filling: list[PatternTerm] = []
    for values in zip(*(constants for _, constants, _ in members), strict=True):
        if len(set(values)) == 1:
            filling.append(values[0])
        else:
            # A blank cannot be spelled in a name; not hidden, since it has to be projected.
            name = Variable(f"parameter {len(parameters)}")
            filling.append(parameters.setdefault(values, name))
    pattern = shape.pattern
    if filling:
        rest = iter(filling)
        pattern, _ = _map_constants(pattern, lambda _: next(rest))
    lengths = list(zip(*(ranges for _, _, ranges in members), strict=True))
    query = replace(shape, pattern=pattern)
    if lengths:
        query = _with_ranges(query, [max(each) for each in lengths])
    timed = [place for place, each in enumerate(shape.windows) if _has_range(each.scope)]
    differ = [place for place, each in enumerate(lengths) if len(set(each)) > 1]
    own = list(zip(*parameters, strict=True)) if parameters else [()] * len(members)
    return QueryTemplate(
        query,
        tuple(parameters.values()),
        tuple(timed[place] for place in differ),
        tuple(
            TemplateMember(number, constants, tuple(ranges[place] for place in differ))
            for (number, _, ranges), constants in zip(members, own, strict=True)
        ),
    )


def _columns(query: ContinuousQuery) -> QueryForm:
    """A CONSTRUCT needs the variables of its template; the triples are its own matter."""
    if not isinstance(query.form, ConstructForm):
        return query.form
    return SelectForm(variables=query.form.variables)


# --- windows ----------------------------------------------------------------------------------


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


def _has_range(scope: Node) -> bool:
    return isinstance(scope, TimeScope) and scope.step_ms is None


def _without_ranges(query: ContinuousQuery) -> tuple[ContinuousQuery, tuple[int, ...]]:
    ranges = tuple(
        each.scope.range_ms
        for each in query.windows
        if isinstance(each.scope, TimeScope) and each.scope.step_ms is None
    )
    return _with_ranges(query, [1] * len(ranges)), ranges


def _with_ranges(query: ContinuousQuery, ranges: Sequence[int]) -> ContinuousQuery:
    rest = iter(ranges)
    windows = tuple(
        replace(each, scope=replace(each.scope, range_ms=next(rest)))
        if isinstance(each.scope, TimeScope) and each.scope.step_ms is None
        else each
        for each in query.windows
    )
    return replace(query, windows=windows)


# --- constants --------------------------------------------------------------------------------


def _map_constants(pattern: Pattern, take: _Take) -> tuple[Pattern, frozenset[Variable]]:
    """Replace the constants that may become parameters, in a fixed order.

    Returns also the new variables; every solution of the new pattern binds them.
    """
    match pattern:
        case BasicPattern(patterns=patterns):
            found: set[Variable] = set()

            def put(term: PatternTerm) -> PatternTerm:
                if isinstance(term, Variable):
                    return term
                new = take(term)
                if isinstance(new, Variable):
                    found.add(new)
                return new

            mapped = tuple(_map_triple(each, put) for each in patterns)
            return replace(pattern, patterns=mapped), frozenset(found)
        case Join(inputs=inputs):
            parts = [_map_constants(each, take) for each in inputs]
            new = replace(pattern, inputs=tuple(part for part, _ in parts))
            return new, frozenset().union(*(variables for _, variables in parts))
        case (
            Filter()
            | Extend()
            | WindowPattern()
            | Graph()
            | Distinct()
            | Reduced()
            | OrderBy()
            | Project()
        ):
            below, variables = _map_constants(pattern.input, take)
            new_pattern = replace(pattern, input=below)
            if isinstance(new_pattern, Project):
                columns = (*new_pattern.variables, *sorted(variables))
                new_pattern = replace(new_pattern, variables=tuple(dict.fromkeys(columns)))
            return new_pattern, variables
        case Group(keys=keys) if keys:
            below, variables = _map_constants(pattern.input, take)
            columns = tuple(dict.fromkeys((*keys, *sorted(variables))))
            return replace(pattern, input=below, keys=columns), variables
        case LeftJoin() | Minus():
            below, variables = _map_constants(pattern.left, take)
            return replace(pattern, left=below), variables
        case _:
            return pattern, frozenset()


def _map_triple(
    triple: TriplePattern | PathPattern, put: Callable[[PatternTerm], PatternTerm]
) -> TriplePattern | PathPattern:
    if isinstance(triple, PathPattern):
        if is_closure(triple.path):
            # A path of no steps leads from a constant to itself, whether the graph has it or not.
            return triple
        return replace(triple, subject=put(triple.subject), object=put(triple.object))
    return replace(
        triple,
        subject=put(triple.subject),
        predicate=cast(IRI | Variable, put(triple.predicate)),
        object=put(triple.object),
    )


def bind(pattern: Pattern, values: Mapping[Variable, Fixed]) -> Pattern:
    """Replace parameters by constants; the solutions no longer bind the parameters.

    >>> x, parameter = Variable("x"), Variable("parameter 0")
    >>> triple = TriplePattern(subject=parameter, predicate=IRI("urn:p"), object=x)
    >>> found = bind(BasicPattern(patterns=(triple,)), {parameter: IRI("urn:a")})
    >>> found.patterns[0].subject
    IRI(value='urn:a')
    """

    def put(term: PatternTerm) -> PatternTerm:
        return values.get(term, term) if isinstance(term, Variable) else term

    def rule(node: Node) -> Node:
        match node:
            case TriplePattern() | PathPattern():
                return _map_triple(node, put)
            case Project(variables=variables):
                kept = tuple(each for each in variables if each not in values)
                return replace(node, variables=kept)
            case Group(keys=keys):
                return replace(node, keys=tuple(each for each in keys if each not in values))
            case _:
                return node

    return rewrite(pattern, rule)
