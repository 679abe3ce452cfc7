"""Warnings about a legal query: unknown functions, and variables that nothing binds.

SPARQL gives these cases a meaning: an error that the user does not see, or an empty column. So the
query is not refused, but there is a warning before it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, final

from quadweir.algebra.analyze import inputs, subpatterns
from quadweir.algebra.expressions import Bound, Exists, FunctionCall, VariableExpression
from quadweir.algebra.functions import FUNCTIONS, lookup
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    Extend,
    Filter,
    Group,
    LeftJoin,
    OrderBy,
    Pattern,
    Project,
    is_hidden,
)
from quadweir.algebra.query import ConstructForm, ContinuousQuery, DescribeForm
from quadweir.algebra.scopes import Variables, in_scope, visible
from quadweir.algebra.traverse import PATTERN_CLASSES, children, walk
from quadweir.functions import REGISTERED
from quadweir.spans import Span
from quadweir.terms import IRI, Variable

_SIMILAR_IRI: Final = 0.9
_REGISTER: Final = "Check its IRI, or register it in Python: quadweir.register(iri, code)."


@final
@dataclass(frozen=True, slots=True)
class QueryWarning:
    """A warning: the message, a hint, and the place."""

    message: str
    hint: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        return f"{place}{self.message}. {self.hint}"


def warnings_of(query: ContinuousQuery) -> tuple[QueryWarning, ...]:
    """The warnings of a query, each once.

    >>> from quadweir.syntax.read import parse
    >>> for each in warnings_of(parse("SELECT ?woh { ?who <urn:p> ?y }")):
    ...     print(each)
    1:1: nothing binds ?woh: it has no value in any answer. Did you mean ?who?
    """
    found = [*_unknown_functions(query), *_unbound(query.pattern, query), *_unbound_in_form(query)]
    return tuple(dict.fromkeys(found))


# --- functions ----------------------------------------------------------------------------------


def is_known(function: IRI) -> bool:
    """Whether calls of a function by its IRI can have a value."""
    return lookup(function) is not None


def _unknown_functions(query: ContinuousQuery) -> Iterator[QueryWarning]:
    for each in walk(query):
        if isinstance(each, FunctionCall) and isinstance(each.function, IRI):
            iri = each.function
            if is_known(iri):
                continue
            known = [name.value for name in FUNCTIONS if isinstance(name, IRI)]
            known += [function.iri for function in REGISTERED]
            similar = get_close_matches(iri.value, known, 1, _SIMILAR_IRI)
            yield QueryWarning(
                f"the function {iri} is not known: its calls have no value, and a FILTER on one drops "
                "every solution",
                f"Did you mean <{similar[0]}>?" if similar else _REGISTER,
                each.span,
            )


# --- variables ----------------------------------------------------------------------------------


def _unbound_in_form(query: ContinuousQuery) -> Iterator[QueryWarning]:
    scope = in_scope(query.pattern, query)
    match query.form:
        case ConstructForm(template=template):
            for triple in template:
                for term in triple.terms:
                    if isinstance(term, Variable) and term not in scope:
                        message = f"nothing binds {_said(term)}: triples with it are never made"
                        yield QueryWarning(message, _hint(term, scope), triple.span)
        case DescribeForm(targets=targets):
            for target in targets:
                if isinstance(target, Variable) and target not in scope:
                    message = f"nothing binds {_said(target)}: there is nothing to describe"
                    yield QueryWarning(message, _hint(target, scope), query.form.span)
        case _:
            pass


def _unbound(
    pattern: Pattern, query: ContinuousQuery, outer: Variables = frozenset()
) -> Iterator[QueryWarning]:
    """Find variables without a value in a pattern; `outer` are those that EXISTS puts in."""
    for each in inputs(pattern):
        yield from _unbound(each, query, outer)
    if not isinstance(pattern, Project | Group | Filter | Extend | LeftJoin | OrderBy):
        return
    scope = outer.union(*(in_scope(each, query) for each in inputs(pattern)))
    for expression in children(pattern):
        if not isinstance(expression, PATTERN_CLASSES):
            yield from _unbound_in_expression(expression, query, scope)
    named: tuple[Variable, ...] = ()
    message = ""
    match pattern:
        case Project(variables=named):
            message = "it has no value in any answer"
        case Group(keys=named):
            message = "it separates no groups"
        case _:
            pass
    for variable in named:
        # A hidden key stands for an expression, which has a warning of its own.
        if variable not in scope and not is_hidden(variable):
            yield QueryWarning(
                f"nothing binds {_said(variable)}: {message}", _hint(variable, scope), pattern.span
            )


def _unbound_in_expression(
    node: Node, query: ContinuousQuery, scope: Variables
) -> Iterator[QueryWarning]:
    match node:
        case VariableExpression(variable=variable) | Bound(variable=variable):
            if variable not in scope and not is_hidden(variable):
                elsewhere = any(variable in in_scope(each, query) for each in subpatterns(query))
                hint = (
                    "It is bound elsewhere, but not inside these braces."
                    if elsewhere
                    else _hint(variable, scope)
                )
                yield QueryWarning(
                    f"nothing binds {_said(variable)} where this expression stands", hint, node.span
                )
        case Exists(pattern=inner):
            yield from _unbound(inner, query, scope)
        case _:
            for child in children(node):
                yield from _unbound_in_expression(child, query, scope)


def _said(variable: Variable) -> str:
    return f"?{variable.name}"


def _hint(variable: Variable, scope: Iterable[Variable]) -> str:
    names = [each.name for each in visible(frozenset(scope))]
    similar = get_close_matches(variable.name, names, 1)
    return f"Did you mean ?{similar[0]}?" if similar else "Check its name."
