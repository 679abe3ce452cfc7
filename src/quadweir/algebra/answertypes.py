"""Which types the answers of a query have, as far as the query alone says.

COUNT gives integers, whatever the data; what a triple pattern matches may be anything. Nothing is
guessed: a variable has a type only if each place that can bind it gives that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final

from quadweir.algebra.expressions import (
    AggregateCall,
    And,
    Arithmetic,
    Bound,
    Coalesce,
    Compare,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    If,
    In,
    Negate,
    Not,
    Or,
    VariableExpression,
)
from quadweir.algebra.functions import lookup
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
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.signatures import NUMBER_TYPES, Type
from quadweir.algebra.traverse import walk
from quadweir.functions import REGISTERED, Kind
from quadweir.terms import IRI, Term, Variable

TermTypes = dict[Variable, Type]
"""The type of each variable that may be bound; `Type.TERM` if nothing is known."""

_NUMBERS: Final = frozenset({Type.NUMERIC, *NUMBER_TYPES.values()})
_CONSTANTS: Final = (
    Type.IRI,
    Type.INTEGER,
    Type.DECIMAL,
    Type.FLOAT,
    Type.DOUBLE,
    Type.BOOLEAN,
    Type.DATE_TIME,
    Type.DATE,
    Type.STRING,
)
_KINDS: Final = {
    Kind.NUMBER: Type.NUMERIC,
    Kind.INTEGER: Type.INTEGER,
    Kind.BOOLEAN: Type.BOOLEAN,
    Kind.DATE: Type.DATE,
    Kind.DATE_TIME: Type.DATE_TIME,
}


def answer_types(query: ContinuousQuery) -> TermTypes:
    """Return the type of each variable of a query's solutions.

    >>> from quadweir.syntax.read import parse
    >>> query = parse(
    ...     "SELECT ?s (COUNT(*) AS ?n) (AVG(?v) AS ?mean) "
    ...     "{ STREAM <urn:s> [RANGE 1m] { ?s <urn:v> ?v } } GROUP BY ?s"
    ... )
    >>> {variable.name: each.value for variable, each in answer_types(query).items()}
    {'s': 'term', 'n': 'xsd:integer', 'mean': 'numeric'}
    """
    return _of_pattern(query.pattern)


def _of_pattern(pattern: Pattern) -> TermTypes:
    match pattern:
        case BasicPattern():
            return _unknown(pattern)
        case Values():
            columns = zip(*pattern.rows, strict=True) if pattern.rows else iter(())
            return {
                variable: _common(_of_term(term) for term in column if term is not None)
                for variable, column in zip(pattern.variables, columns, strict=False)
            }
        case Join() | Union():
            return reduce(_merged, map(_of_pattern, pattern.inputs), {})
        case LeftJoin():
            return _merged(_of_pattern(pattern.left), _of_pattern(pattern.right))
        case Minus():
            return _of_pattern(pattern.left)
        case Filter() | Distinct() | Reduced() | OrderBy() | Slice():
            return _of_pattern(pattern.input)
        case Extend():
            known = _of_pattern(pattern.input)
            return {**known, pattern.variable: _of_expression(pattern.expression, known)}
        case Graph():
            return _merged(_of_pattern(pattern.input), _named(pattern.graph))
        case WindowPattern():
            return _merged(_of_pattern(pattern.input), _named(pattern.window))
        case Service():
            return _merged(_unknown(pattern.input), _named(pattern.endpoint))
        case Group():
            known = _of_pattern(pattern.input)
            keys = {key: known.get(key, Type.TERM) for key in pattern.keys}
            found = {each.variable: _of_aggregate(each.call, known) for each in pattern.aggregates}
            return keys | found
        case Project():
            known = _of_pattern(pattern.input)
            return {each: known.get(each, Type.TERM) for each in pattern.variables}


def _unknown(pattern: Pattern) -> TermTypes:
    found: TermTypes = {}
    for node in walk(pattern):
        for name in node.__dataclass_fields__:
            value = getattr(node, name)
            if isinstance(value, Variable):
                found[value] = Type.TERM
    return found


def _named(name: IRI | Variable) -> TermTypes:
    # A graph may be named by a blank node.
    return {name: Type.TERM} if isinstance(name, Variable) else {}


def _merged(one: TermTypes, other: TermTypes) -> TermTypes:
    """Return the types of what may be bound on either side."""
    both = {each: _common((one[each], other[each])) for each in one.keys() & other.keys()}
    return {**one, **other, **both}


def _common(types: Iterable[Type]) -> Type:
    """Return the narrowest type that holds all values of some types."""
    found = set(types)
    if len(found) == 1:
        return found.pop()
    return Type.NUMERIC if found and found <= _NUMBERS else Type.TERM


def _of_term(term: Term) -> Type:
    return next((each for each in _CONSTANTS if each.accepts(term)), Type.TERM)


def _of_expression(expression: Expression, known: Mapping[Variable, Type]) -> Type:
    def of(part: Expression) -> Type:
        return _of_expression(part, known)

    match expression:
        case VariableExpression():
            return known.get(expression.variable, Type.TERM)
        case Constant():
            return _of_term(expression.term)
        case And() | Or() | Not() | Compare() | In() | Bound() | Exists():
            return Type.BOOLEAN
        case Arithmetic():
            sides = (of(expression.left), of(expression.right))
            return _of_call(expression.operator, sides)
        case Negate():
            return _of_call("NEGATE", (of(expression.operand),))
        case If():
            return _common((of(expression.then), of(expression.otherwise)))
        case Coalesce():
            return _common(map(of, expression.arguments))
        case FunctionCall():
            return _of_call(expression.function, tuple(map(of, expression.arguments)))


def _of_call(name: str | IRI, arguments: tuple[Type, ...]) -> Type:
    own = REGISTERED.get(name.value) if isinstance(name, IRI) else None
    if own is not None and own.outputs:
        return _KINDS.get(own.outputs[0].kind, Type.TERM)
    function = lookup(name)
    return function.result_type(arguments) if function is not None else Type.TERM


def _of_aggregate(call: AggregateCall, known: Mapping[Variable, Type]) -> Type:
    inner = _of_expression(call.argument, known) if call.argument is not None else Type.TERM
    match call.function:
        case "COUNT":
            return Type.INTEGER
        case "GROUP_CONCAT":
            return Type.STRING
        case "SUM":
            # The sum of nothing is the integer 0.
            return Type.INTEGER if inner is Type.INTEGER else Type.NUMERIC
        case "AVG":
            return Type.NUMERIC
        case _:
            return inner
