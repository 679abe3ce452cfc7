"""How the dynamic window of a key changes when it is evicted: small classes, and a registry of them.

A policy sees one key's window as it ends and says how the next one is to be: how long, with which
limits, and how far back records are carried over into it. It knows no clock and keeps nothing, so
that the same records always lead to the same windows.

Paper 000, Algorithm 1, is `PaperPolicy`; what its table of parameters prints the wrong way round
(0.8 is the lower threshold, 1.2 the upper one) is put right here, and limits have a floor, without
which they would fall to 0 and be divided by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol, final

from quadweir.errors import PlanError

MOST_RECORDS: Final = 1_000_000
"""A window by count never holds more."""


@final
@dataclass(frozen=True, slots=True)
class Subwindow:
    """The window of one key, as it ends.

    Attributes:
        size_ms: how long it was to be.
        limits: how many records of the child and of the parent count as full.
        counts: how many it holds.
        span_ms: how far its newest record lies from its first, in event time.
    """

    size_ms: int
    limits: tuple[int, int]
    counts: tuple[int, int]
    span_ms: int

    @property
    def cost(self) -> float:
        """How full both lists are, added up: `m` in the paper."""
        return sum(count / limit for count, limit in zip(self.counts, self.limits, strict=True))


@final
@dataclass(frozen=True, slots=True)
class Next:
    """What comes after: the size and limits of the next window, and how far back it reaches."""

    size_ms: int
    limits: tuple[int, int]
    carry_ms: int = 0


class Policy(Protocol):
    """What a window policy must have; a user's own needs no more than this.

    Attributes:
        size_ms: how long a key's first window is.
        limit: the limits of its lists.
        max_size_ms: how long a window may be at most, and how far back it may reach; a key without
            records for so long after its window has ended is forgotten.
    """

    @property
    def size_ms(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def max_size_ms(self) -> int: ...

    def adapt(self, window: Subwindow) -> Next:
        """Say how the next window of a key is to be."""


@dataclass(frozen=True, kw_only=True)
class PaperPolicy:
    """Paper 000, Algorithm 1: half as long above the upper threshold, twice below the lower one.

    >>> full = Subwindow(2000, (1000, 1000), (900, 600), 1990)
    >>> PaperPolicy().adapt(full)
    Next(size_ms=1000, limits=(1400, 1100), carry_ms=0)
    """

    size_ms: int = 2_000
    min_size_ms: int = 50
    max_size_ms: int = 5_000
    lower: float = 0.8
    upper: float = 1.2
    grow: float = 2.0
    shrink: float = 2.0
    limit: int = 1_000
    least_limit: int = 10

    carries = False
    counts_records = False

    def __post_init__(self) -> None:
        _check(self)

    def adapt(self, window: Subwindow) -> Next:
        cost = window.cost
        size, limits = window.size_ms, window.limits
        if cost > self.upper or cost < self.lower:
            change = 1 / self.shrink if cost > self.upper else self.grow
            size = min(max(int(size * change), self.min_size_ms), self.max_size_ms)
            # limit * (cost + 0.5), in whole records
            low, high = (
                max(count + limit // 2, self.least_limit)
                for count, limit in zip(window.counts, limits, strict=True)
            )
            limits = (low, high)
        return Next(size, limits, window.size_ms if self.carries else 0)


@final
@dataclass(frozen=True, kw_only=True)
class ReleasedPolicy(PaperPolicy):
    """The factors of the later release: it grows slowly, and between wider thresholds not at all."""

    lower: float = 0.5
    upper: float = 1.5
    grow: float = 1.1


@dataclass(frozen=True, kw_only=True)
class CarryPolicy(PaperPolicy):
    """The paper's, but what could still match is carried over the end of a window.

    A record that came no longer before the end than the window was long stays. So no two records
    of a key that lie less than the size in force apart miss each other, wherever windows end.
    """

    carries = True


@final
@dataclass(frozen=True, kw_only=True)
class CountPolicy(PaperPolicy):
    """A window that ends after a number of records, which adapts so that it spans about `size_ms`.

    With fewer records than that it ends after `max_size_ms`, so that nothing stays for ever.

    >>> quick = Subwindow(2000, (1000, 1000), (600, 400), 100)
    >>> CountPolicy().adapt(quick).limits
    (2000, 2000)
    """

    counts_records = True

    def adapt(self, window: Subwindow) -> Next:
        count = window.limits[0]
        share = window.span_ms / window.size_ms
        if share > self.upper:
            count = max(int(count / self.shrink), self.least_limit)
        elif share < self.lower and sum(window.counts) >= count:
            count = min(int(count * self.grow), MOST_RECORDS)
        return Next(window.size_ms, (count, count))


DEFAULT: Final = "carry"
_BUILT_IN: Final[Mapping[str, type[PaperPolicy]]] = {
    "paper": PaperPolicy,
    "released": ReleasedPolicy,
    "carry": CarryPolicy,
    "count": CountPolicy,
}
_REGISTERED: dict[str, Callable[[], Policy]] = {}


def register_policy(name: str, make: Callable[[], Policy]) -> None:
    """Make a policy known by a name, for `qw:policy` in mappings.

    Workers call `make` as well: it must be importable there, or defined in the main program.

    >>> register_policy("steady", lambda: PaperPolicy(min_size_ms=2000, max_size_ms=2000))
    >>> named("steady").max_size_ms
    2000

    Raises:
        PlanError: the name is that of a policy of ours.
    """
    if name in _BUILT_IN:
        raise PlanError(
            f"the window policy {name!r} is one of ours", hint="Give yours another name."
        )
    _REGISTERED[name] = make


def named(name: str) -> Policy:
    """Return the policy of a name, with its own defaults.

    Raises:
        PlanError: there is none.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    if name not in _REGISTERED:
        known = ", ".join(sorted((*_BUILT_IN, *_REGISTERED)))
        raise PlanError(
            f"no window policy is called {name!r}",
            hint=f"Register it with quadweir.register_policy. Known are: {known}.",
        )
    return _REGISTERED[name]()


def configured(policy: Policy, **parameters: float) -> Policy:
    """Return a policy with some parameters set.

    Raises:
        PlanError: it has no such parameter, or the values do not go together.
    """
    if not parameters:
        return policy
    known = {each.name for each in fields(policy)} if isinstance(policy, PaperPolicy) else set()
    for name in parameters:
        if name not in known:
            raise PlanError(
                f"the window policy {type(policy).__name__} has no parameter {name}",
                hint="Set it in the policy itself." if not known else None,
            )
    assert isinstance(policy, PaperPolicy)
    return replace(policy, **parameters)  # type: ignore[arg-type]


def _check(policy: PaperPolicy) -> None:
    if not 0 < policy.min_size_ms <= policy.size_ms <= policy.max_size_ms:
        raise PlanError(
            f"a dynamic window of {policy.size_ms} ms between {policy.min_size_ms} and "
            f"{policy.max_size_ms} ms",
            hint="Let the least size be above zero, and the first one between the two bounds.",
        )
    if not 0 <= policy.lower <= policy.upper:
        raise PlanError(
            f"a lower threshold of {policy.lower} above the upper one of {policy.upper}",
            hint="A window grows below the lower threshold and shrinks above the upper one.",
        )
    if policy.grow < 1 or policy.shrink < 1:
        raise PlanError(
            f"a window that grows by {policy.grow} and shrinks by {policy.shrink}",
            hint="Both are factors of 1 or more; it shrinks by division.",
        )
    if not 1 <= policy.least_limit <= policy.limit <= MOST_RECORDS:
        raise PlanError(
            f"lists of {policy.limit} records, and {policy.least_limit} at least",
            hint=f"Limits are whole numbers from 1 to {MOST_RECORDS}, the least below the first.",
        )
