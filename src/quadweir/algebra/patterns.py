"""Relation to relation: SPARQL's operators over bags of solutions, by their SPARQL names.

A blank node in a query's pattern is a variable that nobody can name. It becomes a *hidden*
variable, whose name starts with `_:` (no query text can spell that) and goes on with a number that
is unique in the query. Helper variables for aggregates, unnamed GROUP BY expressions and the
middles of property paths are hidden in the same way. Hidden variables are never projected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

from quadweir.algebra.expressions import AggregateCall, Expression
from quadweir.algebra.node import Node, require
from quadweir.terms import IRI, Ground, Variable

HIDDEN_PREFIX: Final = "_:"


def is_hidden(variable: Variable) -> bool:
    """Whether a variable stands for a blank node or a helper, and so is never projected.

    >>> is_hidden(Variable("_:1")), is_hidden(Variable("x"))
    (True, False)
    """
    return variable.name.startswith(HIDDEN_PREFIX)


PatternTerm: TypeAlias = Ground | Variable


# --- property paths ---------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Node):
    """A single predicate.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    predicate: IRI


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inverse(Node):
    """A path walked from its end to its start.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    path: Path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(Node):
    """One path after the other.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        require(len(self.paths) >= 2, "a path sequence needs two steps")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Node):
    """Either path; solutions of both are kept, as in a union.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        require(len(self.paths) >= 2, "an alternative path needs two choices")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroOrMore(Node):
    """Any number of steps, each pair of ends once.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    path: Path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneOrMore(Node):
    """At least one step, each pair of ends once.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    path: Path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroOrOne(Node):
    """One step or none, each pair of ends once.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    path: Path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NegatedSet(Node):
    """A single step by a predicate that is not listed.

    `forward` lists what `!(:a|:b)` names, `backward` what `!(^:a)` names. As in SPARQL, there is
    a forward step only if `forward` lists something or both are empty, and a backward step only
    if `backward` lists something.

    Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
    """

    forward: tuple[IRI, ...] = ()
    backward: tuple[IRI, ...] = ()


Path: TypeAlias = (
    Link | Inverse | Sequence | Alternative | ZeroOrMore | OneOrMore | ZeroOrOne | NegatedSet
)


def is_nullable(path: Path) -> bool:
    """Whether a path can have no steps."""
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case OneOrMore() | Inverse():
            return is_nullable(path.path)
        case Sequence():
            return all(map(is_nullable, path.paths))
        case Alternative():
            return any(map(is_nullable, path.paths))
        case Link() | NegatedSet():
            return False
        case _:
            assert_never(path)


# --- leaves -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TriplePattern(Node):
    """A triple with variables in it.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_TriplePattern
    """

    subject: PatternTerm
    predicate: IRI | Variable
    object: PatternTerm


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PathPattern(Node):
    """Two ends and a property path between them.

    A path that is one predicate, its inverse or a sequence is written as triple patterns, so a
    path here has an alternative, a repetition or a negated set at its top.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_PropertyPathPattern
    """

    subject: PatternTerm
    path: Path
    object: PatternTerm

    def __post_init__(self) -> None:
        require(
            not isinstance(self.path, Link | Inverse | Sequence),
            "a plain path is written as triple patterns",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BasicPattern(Node):
    """Triple and path patterns matched together in one graph; without any, the one empty solution.

    Spec: https://www.w3.org/TR/sparql11-query/#BGPsparql
    """

    patterns: tuple[TriplePattern | PathPattern, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Node):
    """Solutions written out in the query; None is UNDEF.

    Spec: https://www.w3.org/TR/sparql11-query/#inline-data
    """

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Ground | None, ...], ...]

    def __post_init__(self) -> None:
        require(
            all(len(row) == len(self.variables) for row in self.rows),
            "a VALUES row is as long as its variables",
        )
        require(len(set(self.variables)) == len(self.variables), "a VALUES variable stands once")


# --- operators --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Node):
    """Every way to put compatible solutions of all inputs together.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algJoin
    """

    inputs: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        require(len(self.inputs) >= 2, "a join needs two inputs")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeftJoin(Node):
    """OPTIONAL: the join where `condition` is true, and each left solution that found no partner.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algLeftJoin
    """

    left: Pattern
    right: Pattern
    condition: Expression | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Union(Node):
    """The solutions of all inputs, none dropped.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algUnion
    """

    inputs: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        require(len(self.inputs) >= 2, "a union needs two inputs")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Minus(Node):
    """The left solutions that agree with no right one on a variable they share.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algMinus
    """

    left: Pattern
    right: Pattern


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Node):
    """Keep the solutions for which `condition` is true; an error counts as false.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algFilter
    """

    input: Pattern
    condition: Expression


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extend(Node):
    """Bind a new variable to an expression's value; an error leaves it unbound.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_extend
    """

    input: Pattern
    variable: Variable
    expression: Expression


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Node):
    """Match the input in a named graph; a variable tries, and is bound to, each of them.

    Inside a `WindowPattern` the graphs are those that quads in the window name (W11), elsewhere
    those of the static data.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_evalGraph
    """

    graph: IRI | Variable
    input: Pattern


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPattern(Node):
    """Match the input in the content of a declared window; a variable tries, and is bound to, each.

    A variable ranges over the names of the query's windows except those that make up its default
    graph. A `Graph` inside looks into the named graphs of the window (W11).

    Spec: https://streamreasoning.github.io/RSP-QL/RSP_Requirements_Design_Document/
    """

    window: IRI | Variable
    input: Pattern


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Node):
    """Ask another SPARQL endpoint; `silent` turns a failure into the one empty solution.

    Spec: https://www.w3.org/TR/sparql11-federated-query/
    """

    endpoint: IRI | Variable
    input: Pattern
    silent: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation(Node):
    """One aggregate of a `Group` and the hidden variable that takes its value."""

    variable: Variable
    call: AggregateCall


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Node):
    """One solution for each combination of the keys' values: the keys, and the aggregates' values.

    An expression in GROUP BY is an `Extend` below. Without keys there is one group, even if
    the input is empty. A key that is not bound is a value of its own.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algGroup
    """

    input: Pattern
    keys: tuple[Variable, ...]
    aggregates: tuple[Aggregation, ...]

    def __post_init__(self) -> None:
        names = (*self.keys, *(each.variable for each in self.aggregates))
        require(len(set(names)) == len(names), "a group's columns have different names")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Node):
    """Keep these variables only, in this order.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algProjection
    """

    input: Pattern
    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        require(len(set(self.variables)) == len(self.variables), "a variable is projected once")
        require(not any(map(is_hidden, self.variables)), "a hidden variable is never projected")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Node):
    """Each solution once.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algDistinct
    """

    input: Pattern


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced(Node):
    """Each solution at least once and at most as often as it is there.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algReduced
    """

    input: Pattern


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKey(Node):
    """One condition of ORDER BY."""

    expression: Expression
    descending: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy(Node):
    """Sort the solutions; ties keep no order.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algOrdered
    """

    input: Pattern
    keys: tuple[OrderKey, ...]

    def __post_init__(self) -> None:
        require(bool(self.keys), "an order needs a key")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Node):
    """Skip `offset` solutions and keep at most `limit`.

    Spec: https://www.w3.org/TR/sparql11-query/#defn_algSlice
    """

    input: Pattern
    offset: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        require(self.offset >= 0, "an offset is not negative")
        require(self.limit is None or self.limit >= 0, "a limit is not negative")


Pattern: TypeAlias = (
    BasicPattern
    | Values
    | Join
    | LeftJoin
    | Union
    | Minus
    | Filter
    | Extend
    | Graph
    | WindowPattern
    | Service
    | Group
    | Project
    | Distinct
    | Reduced
    | OrderBy
    | Slice
)
