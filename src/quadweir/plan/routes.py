"""Where the rows of a template are routed to classes of members.

The joins, unions and filters directly above windows run once, over the longest windows. A `Route`
above them turns each row into one for each class that admits it. The nodes above compare rows of one
class only: the class is one of their keys, columns or join variables.

A graph has each triple once (W8), and which elements carry it differs between classes. So there a
row is routed directly above its window, below its DISTINCT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never, final

from quadweir.plan.nodes import (
    CLASS,
    AntiJoin,
    Closure,
    Distinct,
    Exchange,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    PlanNode,
    Project,
    Recompute,
    Route,
    StaticRelation,
    Union,
    Window,
    rewrite,
    walk,
)
from quadweir.terms import Variable

if TYPE_CHECKING:
    from quadweir.plan.program import Program


class CannotRouteError(Exception):
    """Why rows of a query cannot be distinguished by their class."""


@final
class RoutePlanner:
    """Puts `Route` nodes into a plan.

    Args:
        times: For each match, the place of its window and the variable of its time.
        parameters: The parameters of the template.
    """

    def __init__(
        self, times: Sequence[tuple[int, Variable]], parameters: Sequence[Variable]
    ) -> None:
        self._times = tuple(times)
        self._parameters = tuple(parameters)

    def root(self, node: PlanNode) -> PlanNode:
        """The solutions of a query with a class for each.

        Raises:
            CannotRouteError: A row could belong to no class, or rows of several classes would meet.
        """
        found = self.routed(node)
        if CLASS not in found.always:
            raise CannotRouteError("it has answers while its windows are empty")
        routes = [each for each in walk(found) if isinstance(each, Route)]
        if all(each.parameters == routes[0].parameters for each in routes):
            return found
        # Where some rows go to every class, all do: then classes can become one (`kernel/classes.py`).
        return rewrite(
            found, lambda each: replace(each, parameters=()) if isinstance(each, Route) else each
        )

    def routed(self, node: PlanNode) -> PlanNode:
        """The node with a class for each row; a static relation stays as it is.

        Raises:
            CannotRouteError: A row could belong to no class, or rows of several classes would meet.
        """
        if isinstance(node, StaticRelation):
            return node
        if is_core(node) and _has_part(node):
            own = set(node.variables)
            return Route(
                node,
                tuple(each for each in self._times if each[1] in own),
                tuple(each for each in self._parameters if each in node.always),
            )
        match node:
            case Filter() | Extend() | Distinct():
                return replace(node, input=self._always(node.input))
            case Project(kept=kept):
                return replace(node, input=self._always(node.input), kept=(*kept, CLASS))
            case Group(keys=()):
                raise CannotRouteError("a group without keys has a row even if it is empty")
            case Group(keys=keys):
                return replace(node, input=self._always(node.input), keys=(*keys, CLASS))
            case Join(inputs=inputs):
                return replace(node, inputs=tuple(map(self.routed, inputs)))
            case Union(inputs=inputs):
                return replace(node, inputs=tuple(map(self._always, inputs)))
            case LeftJoin() | AntiJoin():
                return replace(node, left=self._always(node.left), right=self.routed(node.right))
            case Closure():
                raise CannotRouteError("a path that repeats or skips steps")
            case Recompute() | Exchange() | Window() | Route():
                raise CannotRouteError(f"a {node.name}")
            case _:
                assert_never(node)

    def _always(self, node: PlanNode) -> PlanNode:
        found = self.routed(node)
        if CLASS not in found.always:
            raise CannotRouteError("static rows and rows of windows are put together")
        return found


def is_read_at_once(node: PlanNode, program: Program) -> bool:
    """Whether all that reads the rows of a node reads them only when they come and go."""
    users = [each for each in program.nodes if node in each.inputs]
    return all(
        isinstance(each, Group | Distinct)
        or (isinstance(each, Filter | Extend | Project | Union) and is_read_at_once(each, program))
        for each in users
    )


def is_core(node: PlanNode) -> bool:
    """Whether the rows of a node follow from the rows of windows one by one."""
    return all(
        isinstance(each, Window | StaticRelation | Join | Union | Filter | Extend | Project)
        for each in walk(node)
    )


def _has_part(node: PlanNode) -> bool:
    """Whether every row has a part that is a row of a window."""
    match node:
        case Window():
            return True
        case Filter(input=source) | Extend(input=source) | Project(input=source):
            return _has_part(source)
        case Union(inputs=inputs):
            return all(map(_has_part, inputs))
        case Join(inputs=inputs):
            return any(map(_has_part, inputs))
        case _:
            return False
