"""Triple terms with variables in them, as patterns: the term is matched whole and then taken apart.

`?x :says <<( ?s :p ?o )>>` becomes `?x :says ?t`, where ?t is hidden, with BINDs of SUBJECT(?t) and
OBJECT(?t) and a FILTER. So nothing but the functions has to know what is inside a term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

from quadweir.algebra.expressions import (
    And,
    Bound,
    Constant,
    Expression,
    FunctionCall,
    VariableExpression,
)
from quadweir.algebra.patterns import (
    BasicPattern,
    Extend,
    Filter,
    PathPattern,
    Pattern,
    TriplePattern,
)
from quadweir.algebra.query import TemplateTerm, TripleTemplate
from quadweir.terms import BlankNode, TripleTerm, Variable

LeafMaker: TypeAlias = Callable[[BasicPattern], Pattern]


def template_depth(term: TemplateTerm) -> int:
    """The depth of nested triple terms."""
    if isinstance(term, TripleTemplate):
        return 1 + max(template_depth(term.subject), template_depth(term.object))
    return term.depth if isinstance(term, TripleTerm) else 0


@final
@dataclass(frozen=True, slots=True)
class TermMatch:
    """A triple or path pattern that binds hidden variables to triple terms, and their parts."""

    pattern: TriplePattern | PathPattern
    terms: tuple[tuple[Variable, TripleTemplate], ...]

    def built(self, leaf: LeafMaker) -> Pattern:
        """The term as a separate pattern, to be joined with the rest of its group.

        That it is bound is said of each variable, so that joins can look rows up by it.
        """
        single = self.pattern
        found = leaf(BasicPattern(patterns=(single,), span=single.span))
        ends = [single.subject, single.object]
        if isinstance(single, TriplePattern):
            ends.append(single.predicate)
        known = {term for term in ends if isinstance(term, Variable)}
        conditions: list[Expression] = []
        for variable, template in self.terms:
            whole = VariableExpression(variable=variable)
            conditions.append(FunctionCall(function="ISTRIPLE", arguments=(whole,)))
            for part, expression in _parts(template, whole):
                if isinstance(part, Variable) and part not in known:
                    known.add(part)
                    found = Extend(
                        input=found, variable=part, expression=expression, span=single.span
                    )
                    conditions.append(Bound(variable=part))
                    continue
                assert not isinstance(part, BlankNode | TripleTemplate)
                other: Expression = (
                    VariableExpression(variable=part)
                    if isinstance(part, Variable)
                    else Constant(term=part)
                )
                conditions.append(FunctionCall(function="SAMETERM", arguments=(expression, other)))
        return Filter(input=found, condition=And(parts=tuple(conditions)), span=single.span)


def _parts(
    template: TripleTemplate, whole: Expression
) -> Iterator[tuple[TemplateTerm, Expression]]:
    """The parts of a triple term, each with the expression that extracts it."""
    pairs: tuple[tuple[str, TemplateTerm], ...] = (
        ("SUBJECT", template.subject),
        ("PREDICATE", template.predicate),
        ("OBJECT", template.object),
    )
    for name, part in pairs:
        expression = FunctionCall(function=name, arguments=(whole,))
        if isinstance(part, TripleTemplate):
            yield from _parts(part, expression)
        else:
            yield part, expression
