"""Compute constant expressions at planning time."""

from __future__ import annotations

from quadweir.algebra.expressions import (
    And,
    Arithmetic,
    Coalesce,
    Compare,
    Constant,
    Expression,
    FunctionCall,
    If,
    In,
    Negate,
    Not,
    Or,
)
from quadweir.algebra.functions import lookup
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.scalar import evaluate_expression
from quadweir.algebra.signatures import Context, Determinism
from quadweir.algebra.traverse import children
from quadweir.algebra.values import FALSE, TRUE, effective_boolean_value
from quadweir.optimize.conditions import is_boolean
from quadweir.terms import IRI, Ground, Literal, TripleTerm


def fold_constants(node: Expression) -> Expression:
    """Replace an expression of constants by its value, and drop parts that have no effect.

    An expression that is an error stays: there is no constant for it, and COALESCE may catch it.

    >>> three = Arithmetic(operator="+", left=_integer(1), right=_integer(2))
    >>> fold_constants(three).term.lexical
    '3'
    """
    match node:
        case And() | Or():
            return _fold_connective(node)
        case If(condition=Constant(term=term)):
            truth = _truth(term)
            if truth is None:
                return node
            return node.then if truth else node.otherwise
        case Coalesce(arguments=(Constant() as first, *_)):
            return first
        case Compare() | Arithmetic() | Negate() | Not() | In():
            return _compute(node)
        case FunctionCall(function=name) if name != "TIMESTAMP":
            function = lookup(name)
            is_pure = function is not None and function.determinism is Determinism.PURE
            return _compute(node) if is_pure else node
        case _:
            return node


def _integer(value: int) -> Constant:
    from quadweir.vocab import XSD

    return Constant(term=Literal(str(value), IRI(XSD.integer)))


def _compute(node: Compare | Arithmetic | Negate | Not | In | FunctionCall) -> Expression:
    if not all(isinstance(each, Constant) for each in children(node)):
        return node
    try:
        # The expression contains neither EXISTS nor a variable, so it needs neither a solution nor
        # data.
        value = evaluate_expression(node, {}, Context(), lambda *_: False)
    except ExpressionError:
        return node
    if not isinstance(value, IRI | Literal | TripleTerm):
        return node
    return Constant(term=value, span=node.span)


def _truth(term: Ground) -> bool | None:
    try:
        return effective_boolean_value(term)
    except ExpressionError:
        return None


def _fold_connective(node: And | Or) -> Expression:
    """A false part makes a conjunction false, even with an error in another part; a true part can
    be dropped.
    """
    deciding = isinstance(node, Or)
    kept: list[Expression] = []
    for part in node.parts:
        if type(part) is type(node):
            kept.extend(part.parts)
            continue
        truth = _truth(part.term) if isinstance(part, Constant) else None
        if truth is deciding:
            return Constant(term=TRUE if deciding else FALSE, span=node.span)
        if truth is None:
            kept.append(part)
    if len(kept) == len(node.parts) and all(a is b for a, b in zip(kept, node.parts, strict=True)):
        return node
    if not kept:
        return Constant(term=FALSE if deciding else TRUE, span=node.span)
    if len(kept) == 1:
        # The connective returns a boolean, so its replacement must do that too.
        if is_boolean(kept[0]):
            return kept[0]
        if len(node.parts) == 2:
            return node
        kept.append(Constant(term=FALSE if deciding else TRUE))
    return type(node)(parts=tuple(kept), span=node.span)
