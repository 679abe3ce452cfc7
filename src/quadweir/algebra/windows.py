"""Stream to relation: which elements of a stream a query sees at an instant.

Times are milliseconds since 1970-01-01T00:00:00Z. The rules named W1 to W10 are those of the
semantics page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, final

from quadweir.algebra.node import Node, require
from quadweir.terms import IRI, Variable


@final
class Content(Enum):
    """How the elements in scope become a relation (W8)."""

    BAG = "bag"  # every element counts, each with its own time
    GRAPH = "graph"  # a triple is there once, as long as some element in scope carries it


@final
class CountUnit(Enum):
    """What a count window counts (W4)."""

    TRIPLES = "triples"
    ELEMENTS = "elements"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScope(Node):
    """The elements with t - range < time <= t (W1).

    With a step, the scope is evaluated only at the close instants origin + k * step, k >= 1 (W2);
    a tumbling window has a step equal to its range (W3). With `full`, the first window opens at
    the origin, so that the first close is origin + range (W9). With `while_open`, the window that
    closes next is evaluated at every instant, even if it is not full (W10).

    Spec: https://streamreasoning.github.io/RSP-QL/RSP_Requirements_Design_Document/
    """

    range_ms: int
    step_ms: int | None = None
    origin_ms: int = 0
    full: bool = False
    while_open: bool = False

    def __post_init__(self) -> None:
        require(self.range_ms > 0, "a window range must be positive")
        require(self.step_ms is None or self.step_ms > 0, "a window step must be positive")
        require(self.step_ms is not None or not self.full, "a window without a step never closes")
        require(self.step_ms is not None or not self.while_open, "only steps open windows")

    @property
    def first_close_ms(self) -> int:
        """The first close instant; the origin if there is no step."""
        return self.origin_ms + (self.range_ms if self.full else self.step_ms or 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountScope(Node):
    """The last `size` triples or elements up to t, by event time and then position (W4).

    With a step, it is evaluated only at every `step`-th one.
    """

    unit: CountUnit
    size: int
    step: int | None = None

    def __post_init__(self) -> None:
        require(self.size > 0, "a count window must hold something")
        require(self.step is None or self.step > 0, "a window step must be positive")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NowScope(Node):
    """The elements with time = t (W5)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllScope(Node):
    """Every element up to t (W5); no plan runs it unless its state can be bounded or is allowed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PastScope(Node):
    """The elements with t - from < time <= t - to (W6); a step works as in `TimeScope`."""

    from_ms: int
    to_ms: int
    step_ms: int | None = None
    origin_ms: int = 0

    def __post_init__(self) -> None:
        require(self.from_ms > self.to_ms >= 0, "a past window must start before it ends")
        require(self.step_ms is None or self.step_ms > 0, "a window step must be positive")

    @property
    def first_close_ms(self) -> int:
        """The first close instant; the origin if there is no step."""
        return self.origin_ms + (self.step_ms or 0)


Scope: TypeAlias = TimeScope | CountScope | NowScope | AllScope | PastScope


def is_stepped(scope: Scope) -> bool:
    """Whether a scope is evaluated only at close instants.

    >>> is_stepped(TimeScope(range_ms=1000)), is_stepped(TimeScope(range_ms=1000, step_ms=500))
    (False, True)
    >>> is_stepped(TimeScope(range_ms=1000, step_ms=500, while_open=True))
    False
    """
    match scope:
        case TimeScope():
            return scope.step_ms is not None and not scope.while_open
        case PastScope(step_ms=step) | CountScope(step=step):
            return step is not None
        case _:
            return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Node):
    """A window over a stream, known in the query by `name`.

    If `stream` is a variable, there is one such window over every stream there is, and a
    `WindowPattern` over it binds the variable to the stream's IRI. `event_time` is the predicate
    inside each element that carries its event time (S2); None means what the stream declares.
    """

    name: IRI
    stream: IRI | Variable
    scope: Scope
    content: Content
    event_time: IRI | None = None
