"""What the programs of several templates may have in common, and so run once."""

from __future__ import annotations

from quadweir.plan.canonical import Canonicalizer
from quadweir.plan.nodes import (
    Join,
    PlanNode,
    Report,
    Route,
    StaticRelation,
    Union,
    Window,
    walk,
)
from quadweir.plan.program import Program
from quadweir.plan.routes import is_core
from quadweir.terms import Variable


def can_share(program: Program) -> bool:
    """Whether a program may share operators with others: its members may join at any instant."""
    return (
        program.template is not None
        and not program.template.one_since
        and program.why_not is None
        and not program.not_shared
        and not any(
            isinstance(each, Union) and any(isinstance(one, StaticRelation) for one in each.inputs)
            for each in program.nodes
        )
    )


def core_of(program: Program) -> frozenset[PlanNode]:
    """The nodes of a template whose rows do not depend on its members, but for window lengths."""
    roots = [each.input for each in program.nodes if isinstance(each, Route)]
    found = walk(program.root) if program.eager else walk(*roots)
    return frozenset(each for each in found if not isinstance(each, Report) and is_core(each))


def common_joins(program: Program, key: Variable | None) -> dict[str, Join]:
    """The joins of a program that others may share, by the names of their sub-plans.

    A join below another one is part of it. One that reads static data that is divided over shards is
    left out: only large static data is, and it is laid out once for the shards of one template.

    Args:
        program: A program that may share operators.
        key: The variable by which its rows are sharded.
    """
    assert program.template is not None
    core = core_of(program)
    canonical = Canonicalizer(program.template.windows, eager=program.eager, key=key)
    joins = [each for each in core if isinstance(each, Join)]
    below = {one for each in joins for part in each.inputs for one in walk(part)}
    return {
        canonical.of(each).name: each
        for each in joins
        if each not in below and not any(_is_divided(one) for one in walk(each))
    }


def _is_divided(node: object) -> bool:
    return isinstance(node, StaticRelation) and node.key is not None


def windows_below(node: PlanNode) -> list[Window]:
    """The windows that a node reads."""
    return [each for each in walk(node) if isinstance(each, Window)]
