"""The types, signatures and determinism of functions, and the context of a call.

A `Type` checks an argument and turns it into a Python value; the result is spelled as a term. So
the table's types are not just documentation: the code runs on them, and a compiler can trust them.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, final

from quadweir.algebra.moments import (
    Duration,
    DurationKind,
    ExpressionError,
    Moment,
    MomentKind,
    from_epoch_ms,
)
from quadweir.algebra.values import (
    LanguageString,
    Number,
    NumberKind,
    effective_boolean_value,
    literal_of,
    value_of,
)
from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm

_MISSING: Final = object()


class Type(Enum):
    """A set of terms, and the Python value that stands for each while a function runs."""

    TERM = "term"
    IRI = "IRI"
    BLANK_NODE = "blank node"
    LITERAL = "literal"
    TRIPLE = "triple term"
    TEXT = "string literal"  # xsd:string or with a language; handed over as the literal
    STRING = "xsd:string"
    TRUTH = "effective boolean value"
    BOOLEAN = "xsd:boolean"
    NUMERIC = "numeric"
    INTEGER = "xsd:integer"
    DECIMAL = "xsd:decimal"
    FLOAT = "xsd:float"
    DOUBLE = "xsd:double"
    DATE_TIME = "xsd:dateTime"
    DATE = "xsd:date"
    TIME = "xsd:time"
    DURATION = "xsd:duration"  # of any of the three kinds
    DAY_TIME_DURATION = "xsd:dayTimeDuration"
    YEAR_MONTH_DURATION = "xsd:yearMonthDuration"

    def unpack(self, term: Term) -> Any:
        """Turn a term into the value a function works on.

        Raises:
            ExpressionError: the term is not of this type.
        """
        value = _unpack(self, term)
        if value is _MISSING:
            raise ExpressionError(f"{term} is not of type {self.value}")
        return value

    def accepts(self, term: Term) -> bool:
        """Whether a term is of this type.

        >>> Type.NUMERIC.accepts(Literal("x"))
        False
        """
        try:
            return _unpack(self, term) is not _MISSING
        except ExpressionError:
            return False


_NUMBERS: Final = {
    Type.INTEGER: NumberKind.INTEGER,
    Type.DECIMAL: NumberKind.DECIMAL,
    Type.FLOAT: NumberKind.FLOAT,
    Type.DOUBLE: NumberKind.DOUBLE,
}
NUMBER_TYPES: Final = {kind: kind_type for kind_type, kind in _NUMBERS.items()}
_MOMENTS: Final = {
    Type.DATE_TIME: MomentKind.DATE_TIME,
    Type.DATE: MomentKind.DATE,
    Type.TIME: MomentKind.TIME,
}
_DURATIONS: Final = {
    Type.DAY_TIME_DURATION: DurationKind.DAY_TIME,
    Type.YEAR_MONTH_DURATION: DurationKind.YEAR_MONTH,
}


def _unpack(kind: Type, term: Term) -> Any:
    match kind:
        case Type.TERM:
            return term
        case Type.IRI:
            return term if isinstance(term, IRI) else _MISSING
        case Type.BLANK_NODE:
            return term if isinstance(term, BlankNode) else _MISSING
        case Type.LITERAL:
            return term if isinstance(term, Literal) else _MISSING
        case Type.TRIPLE:
            return term if isinstance(term, TripleTerm) else _MISSING
        case Type.TRUTH:
            return effective_boolean_value(term)
        case _:
            return _unpack_value(kind, term) if isinstance(term, Literal) else _MISSING


def _unpack_value(kind: Type, term: Literal) -> Any:
    value = value_of(term)
    match kind, value:
        case (Type.TEXT, str() | LanguageString()):
            return term
        case (Type.STRING, str()) | (Type.BOOLEAN, bool()) | (Type.NUMERIC, Number()):
            return value
        case (_, Number(kind=number_kind)) if _NUMBERS.get(kind) is number_kind:
            return value
        case (_, Moment(kind=moment_kind)) if _MOMENTS.get(kind) is moment_kind:
            return value
        case (Type.DURATION, Duration()):
            return value
        case (_, Duration(kind=duration_kind)) if _DURATIONS.get(kind) is duration_kind:
            return value
        case _:
            return _MISSING


class Determinism(Enum):
    """How far a result may be reused."""

    PURE = "always"  # equal arguments, equal result: may be folded
    PER_REPORT = "within a report"  # NOW
    PER_SOLUTION = "within a solution"  # RAND, UUID, STRUUID, BNODE


@dataclass(slots=True)
class Context:
    """The context of a call, in addition to its arguments.

    `now` is the report instant, never the machine's clock. `blank_nodes` maps the labels given to
    BNODE to the nodes made for them, and is emptied for every solution. `triple_times` gives, for
    `timestamp(s, p, o)`, the latest event time of each triple that some window holds.
    """

    now: Moment = field(default_factory=lambda: from_epoch_ms(0))
    random: random.Random = field(default_factory=lambda: random.Random(0))
    blank_nodes: dict[str, BlankNode] = field(default_factory=dict)
    scope: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    made: int = 0
    triple_times: Mapping[tuple[Term, Term, Term], int] = field(default_factory=dict)

    def fresh_blank_node(self) -> BlankNode:
        """Make a blank node that neither the data nor another context has."""
        self.made += 1
        return BlankNode(f"b{self.scope}x{self.made}")


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function.

    `implementation` takes the values that the argument types unpack to, after the context if it
    `needs_context`; None where no implementation over terms can exist. A `variadic` signature
    repeats its one type, from no arguments on. The result of one that `promotes` has the widest
    numeric type among the arguments (at least a decimal for `/`).
    """

    arguments: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any] | None
    variadic: bool = False
    promotes: bool = False
    needs_context: bool = False

    def types_for(self, count: int) -> tuple[Type, ...] | None:
        """The argument types of a call with `count` arguments; None if that many do not fit."""
        if self.variadic:
            return self.arguments * count
        return self.arguments if len(self.arguments) == count else None


@final
@dataclass(frozen=True, slots=True)
class TypedFunction:
    """A named function with its signatures; the first that fits the arguments is meant."""

    name: str | IRI
    signatures: tuple[Signature, ...]
    determinism: Determinism = Determinism.PURE

    def result_type(self, arguments: tuple[Type, ...]) -> Type:
        """The type of the result, if the arguments' types determine it; otherwise `Type.TERM`.

        >>> from quadweir.algebra.functions import FUNCTIONS
        >>> FUNCTIONS["+"].result_type((Type.INTEGER, Type.DOUBLE))
        <Type.DOUBLE: 'xsd:double'>
        >>> FUNCTIONS["/"].result_type((Type.INTEGER, Type.INTEGER))
        <Type.DECIMAL: 'xsd:decimal'>
        >>> FUNCTIONS["STRLEN"].result_type((Type.TERM,))
        <Type.INTEGER: 'xsd:integer'>
        """
        fitting = [
            each
            for each in self.signatures
            if (types := each.types_for(len(arguments))) is not None
            and all(_may_be(given, wanted) for given, wanted in zip(arguments, types, strict=True))
        ]
        results = {each.result for each in fitting}
        if len(results) != 1:
            return Type.TERM
        if fitting[0].promotes and all(each in _NUMBERS for each in arguments):
            kind = max(_NUMBERS[each] for each in arguments)
            if self.name == "/" and kind is NumberKind.INTEGER:
                kind = NumberKind.DECIMAL
            return NUMBER_TYPES[kind]
        return results.pop()

    def __call__(self, arguments: tuple[Term, ...], context: Context) -> Term:
        """Run the first signature that fits.

        Raises:
            ExpressionError: none fits, or the function has no value there.
        """
        for signature in self.signatures:
            types = signature.types_for(len(arguments))
            if types is None or signature.implementation is None:
                continue
            if not all(map(Type.accepts, types, arguments)):
                continue
            values = [kind.unpack(term) for kind, term in zip(types, arguments, strict=True)]
            if signature.needs_context:
                return term_of(signature.implementation(context, *values))
            return term_of(signature.implementation(*values))
        spelled = ", ".join(map(str, arguments))[:200]
        raise ExpressionError(f"{self.name} has no value for ({spelled})")


_BROADER: Final = {
    Type.TEXT: {Type.STRING},
    Type.NUMERIC: set(_NUMBERS),
    Type.DURATION: set(_DURATIONS),
    Type.TRUTH: {Type.BOOLEAN, Type.STRING, Type.TEXT, Type.NUMERIC, *_NUMBERS},
}


def _may_be(given: Type, wanted: Type) -> bool:
    """Whether a term of type `given` can be of type `wanted`."""
    if Type.TERM in (given, wanted) or given is wanted:
        return True
    if Type.LITERAL in (given, wanted):
        other = wanted if given is Type.LITERAL else given
        return other not in (Type.IRI, Type.BLANK_NODE, Type.TRIPLE)
    return given in _BROADER.get(wanted, ()) or wanted in _BROADER.get(given, ())


def term_of(value: Any) -> Term:
    """Spell what an implementation returns as a term."""
    match value:
        case IRI() | BlankNode() | Literal() | TripleTerm():
            return value
        case bool():
            return literal_of(value)
        case int():
            return literal_of(Number.integer(value))
        case _:
            return literal_of(value)
