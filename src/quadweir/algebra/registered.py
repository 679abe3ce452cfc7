"""Functions that users registered in Python, as functions of the algebra.

`quadweir.functions` holds them, for queries and mappings alike. Here terms become the Python values
of their parameters, and results become terms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from quadweir import functions
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.signatures import Determinism, Signature, Type, TypedFunction, term_of
from quadweir.algebra.values import Number, NumberKind, effective_boolean_value, value_of
from quadweir.functions import REGISTERED, Kind
from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm
from quadweir.vocab import XSD


def registered(iri: IRI) -> TypedFunction | None:
    """The function that a user registered under an IRI, if there is one.

    >>> function = functions.register("urn:f:twice", lambda text: text + text)
    >>> from quadweir.algebra.signatures import Context
    >>> registered(IRI("urn:f:twice"))((Literal("ab"),), Context())
    Literal(lexical='abab', datatype=IRI(value='http://www.w3.org/2001/XMLSchema#string'), language=None)
    >>> REGISTERED.remove("urn:f:twice")
    """
    found = REGISTERED.get(iri.value)
    if found is None or found.code is None:
        return None
    required = sum(parameter.required for parameter in found.parameters)
    # Parameters that mappings know by their IRIs count as given, as the code has no default.
    fewest = len(found.parameters) if any(each.iris for each in found.parameters) else required
    return TypedFunction(
        iri,
        tuple(
            Signature((Type.TERM,) * count, Type.TERM, partial(_call, found, found.code))
            for count in range(fewest, len(found.parameters) + 1)
        ),
        Determinism.PURE if found.deterministic else Determinism.PER_SOLUTION,
    )


def _call(function: functions.Function, code: Callable[..., Any], *terms: Term) -> Term:
    values = [
        _value(term, parameter.kind)
        for term, parameter in zip(terms, function.parameters, strict=False)
    ]
    try:
        answer = _on_series(code, values) if function.vectorized else code(*values)
    except Exception as error:
        raise ExpressionError(
            f"the function {function.iri} failed: {type(error).__name__}: {error}"
        ) from None
    if len(function.outputs) > 1 and answer is not None:
        answer = answer[0]
    return _term(function, answer)


def _on_series(code: Callable[..., Any], values: list[Any]) -> Any:
    import pandas as pd

    return code(*(pd.Series([value]) for value in values)).iloc[0]


def _value(term: Term, kind: Kind) -> Any:
    """The Python value of an argument; a mapping would pass the same value."""
    match kind:
        case Kind.INTEGER | Kind.NUMBER:
            number = value_of(term) if isinstance(term, Literal) else None
            if not isinstance(number, Number):
                raise ExpressionError(f"{term} is no number")
            if kind is Kind.NUMBER:
                return float(number.value)
            if number.value != number.value // 1:
                raise ExpressionError(f"{term} is no whole number")
            return int(number.value)
        case Kind.BOOLEAN:
            return effective_boolean_value(term)
        case Kind.LIST:
            return [_text(term)]
        case _:
            return _text(term)


def _text(term: Term) -> str:
    match term:
        case IRI():
            return term.value
        case Literal():
            return term.lexical
        case BlankNode():
            raise ExpressionError("a blank node has no string form")
        case TripleTerm():
            raise ExpressionError("a triple term has no string form")


def _term(function: functions.Function, answer: Any) -> Term:
    """Turn a result into a term; the output's kind says which datatype it has."""
    if isinstance(answer, (list, tuple, set, frozenset)):
        if len(answer) != 1:
            raise ExpressionError(f"the function {function.iri} gives {len(answer)} values")
        (answer,) = answer
    kind = function.outputs[0].kind
    match answer:
        case None:
            raise ExpressionError(f"the function {function.iri} gives no value")
        case IRI() | BlankNode() | Literal() | TripleTerm():
            return answer
        case bool():
            return term_of(answer)
        case int() if kind is not Kind.NUMBER:
            return term_of(int(answer))
        case int() | float():
            return term_of(Number(NumberKind.DOUBLE, float(answer)))
        case _:
            return Literal(str(answer), IRI(kind.datatype or XSD.string))
