"""The clauses around a WHERE, once read: what SELECT, GROUP BY, HAVING and ORDER BY ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quadweir.algebra.expressions import AggregateCall, Exists, Expression, VariableExpression
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import OrderKey, Pattern, is_hidden
from quadweir.algebra.traverse import children, rewrite_expressions
from quadweir.spans import Span
from quadweir.syntax.build_expressions import Aggregations
from quadweir.syntax.build_terms import Branch
from quadweir.terms import Variable


@dataclass(slots=True, kw_only=True)
class SelectParts:
    """One SELECT (or the modifiers of another form) before it is put together.

    `columns` holds the projected variables in order, each with its expression or None; `star`
    means all variables in scope instead.
    """

    pattern: Pattern
    scope: dict[Variable, None]
    place: Span | None
    keys: dict[Variable, None] = field(default_factory=dict)
    columns: dict[Variable, Expression | None] = field(default_factory=dict)
    places: dict[Variable, Branch] = field(default_factory=dict)
    having: list[Expression] = field(default_factory=list)
    order: list[OrderKey] = field(default_factory=list)
    aggregations: Aggregations | None = None
    star: bool = False
    grouped: bool = False

    def sampled(self, expression: Expression, known: set[Variable]) -> Expression:
        """Replace each variable that the groups hide by a sample of it.

        Spec: https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra
        """

        def sample(each: Expression) -> Expression:
            match each:
                case VariableExpression(variable=variable) if (
                    variable in self.scope and variable not in known and not is_hidden(variable)
                ):
                    call = AggregateCall(function="SAMPLE", argument=each, span=each.span)
                    assert self.aggregations is not None
                    return VariableExpression(
                        variable=self.aggregations.variable(call), span=each.span
                    )
                case _:
                    return each

        return rewrite_expressions(expression, sample)


def expression_variables(expression: Expression) -> set[Variable]:
    """The variables an expression reads, those only inside EXISTS left out."""
    found: set[Variable] = set()
    stack: list[Node] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Exists):
            continue
        variable = getattr(node, "variable", None)
        if isinstance(variable, Variable):
            found.add(variable)
        stack.extend(children(node))
    return found


def substitute(expression: Expression, values: Mapping[Variable, Expression]) -> Expression:
    """Put expressions in the place of variables.

    HAVING comes before SELECT's own names have values, so `HAVING (?n > 2)` would never hold by
    the letter of SPARQL. People who write it mean the expression that SELECT calls ?n.
    """

    def one(each: Expression) -> Expression:
        if isinstance(each, VariableExpression):
            return values.get(each.variable, each)
        return each

    return rewrite_expressions(expression, one)
