"""Scalars: what a filter tests, what BIND and SELECT compute, what aggregates gather."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

from quadweir.algebra.node import Node, require
from quadweir.terms import IRI, Ground, Variable

if TYPE_CHECKING:
    from quadweir.algebra.patterns import Pattern

COMPARISONS: Final = ("=", "!=", "<", ">", "<=", ">=")
ARITHMETIC: Final = ("+", "-", "*", "/")
AGGREGATES: Final = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VariableExpression(Node):
    """The value of a variable; an error where it is not bound."""

    variable: Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Node):
    """A fixed term."""

    term: Ground


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class And(Node):
    """True if all parts are true, false if one is false, else an error.

    Spec: https://www.w3.org/TR/sparql11-query/#func-logical-and
    """

    parts: tuple[Expression, ...]

    def __post_init__(self) -> None:
        require(len(self.parts) >= 2, "a conjunction needs two parts")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Or(Node):
    """True if one part is true, false if all are false, else an error.

    Spec: https://www.w3.org/TR/sparql11-query/#func-logical-or
    """

    parts: tuple[Expression, ...]

    def __post_init__(self) -> None:
        require(len(self.parts) >= 2, "a disjunction needs two parts")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Node):
    """The opposite of the operand's effective boolean value.

    Spec: https://www.w3.org/TR/sparql11-query/#func-not
    """

    operand: Expression


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(Node):
    """One of `=`, `!=`, `<`, `>`, `<=`, `>=`, by value.

    Spec: https://www.w3.org/TR/sparql11-query/#OperatorMapping
    """

    operator: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        require(self.operator in COMPARISONS, f"no comparison {self.operator!r}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic(Node):
    """One of `+`, `-`, `*`, `/`, with numeric promotion; a unary plus is `0 + operand`.

    Spec: https://www.w3.org/TR/sparql11-query/#OperatorMapping
    """

    operator: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        require(self.operator in ARITHMETIC, f"no operator {self.operator!r}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Negate(Node):
    """The unary minus."""

    operand: Expression


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class In(Node):
    """Whether the operand equals one of the choices, or none if `negated`.

    Spec: https://www.w3.org/TR/sparql11-query/#func-in
    """

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall(Node):
    """A built-in function by its upper-case name, or a cast or extension function by its IRI.

    C-SPARQL's `timestamp()` is the built-in TIMESTAMP. Of one variable it is the event time of the
    latest element that bound it; of the three parts of a triple, that of the latest element in any
    window of the query that carries the triple (rule A1 of the semantics page).

    Spec: https://www.w3.org/TR/sparql11-query/#SparqlOps
    """

    function: str | IRI
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        require(
            isinstance(self.function, IRI) or self.function == self.function.upper(),
            f"the built-in {self.function} is not spelt in upper case",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class If(Node):
    """`then` or `otherwise`, by the condition's effective boolean value.

    Spec: https://www.w3.org/TR/sparql11-query/#func-if
    """

    condition: Expression
    then: Expression
    otherwise: Expression


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Coalesce(Node):
    """The first argument that is no error; an error if there is none.

    Spec: https://www.w3.org/TR/sparql11-query/#func-coalesce
    """

    arguments: tuple[Expression, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Node):
    """Whether a variable has a value.

    Spec: https://www.w3.org/TR/sparql11-query/#func-bound
    """

    variable: Variable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(Node):
    """Whether the pattern has a solution once this solution's values are put in; or, negated, has none.

    Spec: https://www.w3.org/TR/sparql11-query/#func-filter-exists
    """

    pattern: Pattern
    negated: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall(Node):
    """An aggregate over a group; `argument` is None only for COUNT(*).

    It stands nowhere but in `Group.aggregates`, hence it is no `Expression`. `separator` is a
    string for GROUP_CONCAT and None for all others. COUNT(DISTINCT *) compares solutions by their
    visible variables only, since SPARQL's solutions have no variables for blank nodes.

    Spec: https://www.w3.org/TR/sparql11-query/#aggregateAlgebra
    """

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None

    def __post_init__(self) -> None:
        require(self.function in AGGREGATES, f"no aggregate {self.function!r}")
        require(
            self.argument is not None or self.function == "COUNT", f"{self.function} of nothing"
        )
        require(
            (self.separator is not None) == (self.function == "GROUP_CONCAT"),
            "a separator belongs to GROUP_CONCAT",
        )


Expression: TypeAlias = (
    VariableExpression
    | Constant
    | And
    | Or
    | Not
    | Compare
    | Arithmetic
    | Negate
    | In
    | FunctionCall
    | If
    | Coalesce
    | Bound
    | Exists
)
