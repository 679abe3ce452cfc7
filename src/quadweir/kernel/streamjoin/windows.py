"""Which records of two streams may meet: the windows of a stream join.

A pair is made as soon as its later record arrives. Its times alone decide whether two
records share a tumbling or sliding window or lie close enough to each other; so those three give
the same pairs for any order of arrival within the delay. The dynamic window depends on the order
of arrival as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, final

from quadweir.errors import PlanError
from quadweir.kernel.streamjoin.policies import DEFAULT, Policy, named


class TimedWindow(Protocol):
    """A window in which times alone say who meets whom.

    Such a window is two numbers: a record at time t starts a piece at the greatest multiple of
    `step` that is not above t, and meets whatever later record comes before that start + `reach`.
    """

    @property
    def step(self) -> int: ...
    @property
    def reach(self) -> int: ...


@final
@dataclass(frozen=True, slots=True)
class Tumbling:
    """Records of one piece of time meet; pieces begin at multiples of `size_ms` since 1970.

    Linear: yes.
    State: the records of pieces that are not over.
    Forgets: a record once the watermark passes the end of its piece.
    """

    size_ms: int = 2_000

    def __post_init__(self) -> None:
        _above_zero(self.size_ms, "tumbling window")

    @property
    def step(self) -> int:
        return self.size_ms

    @property
    def reach(self) -> int:
        return self.size_ms


@final
@dataclass(frozen=True, slots=True)
class Sliding:
    """Records meet, once, that share at least one of the windows [k * slide, k * slide + size).

    Linear: yes.
    State: the records that share a window with something still to come.
    Forgets: a record once the watermark passes the end of the last window it is in.
    """

    size_ms: int = 2_000
    slide_ms: int = 1_000

    def __post_init__(self) -> None:
        _above_zero(self.size_ms, "sliding window")
        _above_zero(self.slide_ms, "slide")
        if self.slide_ms > self.size_ms:
            raise PlanError(
                f"a window of {self.size_ms} ms that moves by {self.slide_ms} ms",
                detail="Records between two windows would meet nothing.",
                hint="Let it move by its size at most.",
            )

    @property
    def step(self) -> int:
        return self.slide_ms

    @property
    def reach(self) -> int:
        return self.size_ms


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """Records meet whose times differ by `distance_ms` at most.

    Linear: yes.
    State: the records of the last `distance_ms` before the watermark, and all after it.
    Forgets: a record once the watermark is `distance_ms` later.
    """

    distance_ms: int = 2_000

    def __post_init__(self) -> None:
        if self.distance_ms < 0:
            raise PlanError("an interval below zero", hint="Give a distance of 0 or more.")

    @property
    def step(self) -> int:
        return 1

    @property
    def reach(self) -> int:
        return self.distance_ms + 1


@final
@dataclass(frozen=True, slots=True)
class Dynamic:
    """A window for each key, which adapts to how much comes: paper 000.

    Linear: no, eviction clears.
    State: the records since the last eviction of each key (with carrying over, some from before),
        and for each key the size and limits of its window.
    Forgets: records when the watermark passes the end of their window; a key when it has had none
        for `forget_ms` after that.
    """

    policy: Policy = field(default_factory=lambda: named(DEFAULT))

    @property
    def forget_ms(self) -> int:
        return self.policy.max_size_ms


@final
@dataclass(frozen=True, slots=True)
class JoinTiming:
    """How late records of child and parent may be, and when a stream stops holding time back.

    Attributes:
        delay_ms: for each side, how far below its highest time a record may be.
        idle_ms: after how long without a record, by times of arrival, a side counts as idle; None
            is never.
    """

    delay_ms: tuple[int, int] = (0, 0)
    idle_ms: int | None = None


JoinWindow: TypeAlias = Tumbling | Sliding | Interval | Dynamic


def _above_zero(size_ms: int, what: str) -> None:
    if size_ms <= 0:
        raise PlanError(f"a {what} of {size_ms} ms", hint="Give it a length above zero.")
