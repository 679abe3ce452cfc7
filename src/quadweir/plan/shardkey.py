"""By which variable the rows of a query are sharded, and why.

If one variable occurs in every windowed pattern, rows that can ever meet have the same value of it
and can be kept in the same shard. Where there is none, or where answers have to be seen together,
all rows go to one shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from quadweir.algebra.analyze import compares_derivations, subpatterns
from quadweir.algebra.patterns import Distinct, Group, OrderBy, Project, Slice
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.network import LeafPlan
from quadweir.kernel.shapes import needs_content
from quadweir.terms import Variable


@final
@dataclass(frozen=True, slots=True)
class ShardKey:
    """The variable that rows are sharded by, None for one shard only; and the reason in words."""

    variable: Variable | None
    reason: str


def choose_key(
    query: ContinuousQuery, leaves: tuple[LeafPlan, ...], why_not: str | None
) -> ShardKey:
    """Choose the key of a query's rows.

    Args:
        query: The query.
        leaves: The leaves whose matches are sharded, those that only track contents left out.
        why_not: Why the query is not kept up to date incrementally, if it is not.
    """
    if why_not is not None:
        return ShardKey(None, f"the query is evaluated as a whole: {why_not}")
    together = _together(query)
    if together is not None:
        return ShardKey(None, together)
    if not leaves:
        return ShardKey(None, "no pattern is matched in a window")
    common = [v for v in leaves[0].variables if all(v in leaf.variables for leaf in leaves)]
    if not common:
        return ShardKey(None, "no variable occurs in every windowed pattern")
    reasons = []
    for variable in common:
        reason = _hidden(query, variable)
        if reason is None:
            return ShardKey(variable, f"{variable} occurs in every windowed pattern")
        reasons.append(reason)
    return ShardKey(None, "; ".join(dict.fromkeys(reasons)))


def _together(query: ContinuousQuery) -> str | None:
    """Say why all answers have to be seen together, if they have to."""
    if isinstance(query.form, AskForm):
        return "ASK is answered once for all rows"
    if any(isinstance(each, Slice | OrderBy) for each in subpatterns(query.pattern)):
        return "ORDER BY and LIMIT look at all rows together"
    if not needs_content(query.pattern):
        return "there are answers even while all windows are empty"
    return None


def _hidden(query: ContinuousQuery, variable: Variable) -> str | None:
    """Say where rows of different shards would meet again, if they would."""
    for each in subpatterns(query.pattern):
        match each:
            case Group(keys=keys) if variable not in keys:
                return f"a group gathers rows of different {variable}"
            case Distinct(input=source) if variable not in in_scope(source, query):
                return f"DISTINCT compares rows of different {variable}"
            case Project(variables=variables) if (
                variable not in variables and each is not query.pattern
            ):
                return f"a subquery hides {variable}"
            case _:
                pass
    differs = query.output is not OutputOperator.RSTREAM and not compares_derivations(query)
    top = query.pattern
    if differs and isinstance(top, Project) and variable not in top.variables:
        return f"reports are compared without {variable}"
    return None
