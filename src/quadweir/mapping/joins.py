"""Joins of two streams: the window of a mapping's join, and the interface of the join itself.

The join needs state, which the mapping does not keep: the caller passes in a function that joins
(`runtime.joins.frames.host_join`). Before the join, each record has become the few columns that its
triples need. After it, a pair is a row of terms like any other.

Over bounded sources a window has no meaning: all records of both are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from quadweir.errors import MappingError, PlanError
from quadweir.kernel.streamjoin.policies import DEFAULT, Policy, configured, named
from quadweir.kernel.streamjoin.windows import Dynamic, Interval, JoinTiming, Sliding, Tumbling
from quadweir.kernel.streamjoin.windows import JoinWindow as Window
from quadweir.mapping.model import JoinWindowKind, JoinWindowMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIDE: Final = "side"
KEY: Final = "key"

ARRIVAL_DELAY_MS: Final = 1_000
"""The allowed delay for arrival times: partitions are not read at the same moment."""
DELAY_MS: Final = 10_000
"""The allowed delay for times inside records (S4)."""
IDLE_MS: Final = 60_000
"""After how long a stream without records stops holding the other back."""

# Our properties, and their names in a policy.
_POLICY: Final = {
    "size": "size_ms",
    "minSize": "min_size_ms",
    "maxSize": "max_size_ms",
    "lowerThreshold": "lower",
    "upperThreshold": "upper",
    "growFactor": "grow",
    "shrinkFactor": "shrink",
    "initialLimit": "limit",
    "leastLimit": "least_limit",
}
_WHOLE: Final = frozenset(("size", "minSize", "maxSize", "initialLimit", "leastLimit"))
_VARIANTS: Final = ("paper", "released", "carry")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JoinInput:
    """Two streams to be joined.

    Attributes:
        frame: the records of both, with `SIDE` (0 is the child), `KEY` (a text, or NULL for a
            record that meets nothing), `rows.EVENT_TIME` (NULL likewise), `rows.ARRIVAL`, and what
            they carry.
        window: the window in which records are joined.
        timing: how late they may be.
        child: the columns that a child adds to a pair.
        parent: the columns that a parent adds to a pair.
        passed: the columns that report single records: the reason why a record cannot be used, then
        its description. A record with a reason comes out with these columns, and is joined too. So
        does a late record that has a description, with its lateness as the reason.
        is_keyed: whether there are different keys; if not, all records belong to one shard.
        name: a name that is unique among the mapping's joins.
        run: a name that distinguishes this run from others of the mapping, for example its
        checkpoint.
    """

    frame: DataFrame
    window: Window
    timing: JoinTiming
    child: tuple[str, ...]
    parent: tuple[str, ...]
    passed: tuple[str, ...]
    is_keyed: bool
    name: str
    run: str = ""


JoinHost: TypeAlias = Callable[[JoinInput], "DataFrame"]
"""Joins; returns a row for each pair, with the columns of both sides and `rows.EVENT_TIME`."""


@final
@dataclass(frozen=True, slots=True)
class StreamTime:
    """Where a stream's records have their times, and how late they may be.

    Attributes:
        reference: the reference that holds the time; None if the source itself has it.
        delay_ms: how late they may be; None if unknown.
        idle_ms: after how long without records the stream counts as idle; None if unknown.
        has_own_time: whether the source itself has a time if no reference does; files have none.
        is_arrival: whether that time is the arrival time, although the source knows another.
        ahead_ms: how far ahead of the clock records may be where they are joined (S4); None for any time.
    """

    reference: str | None = None
    delay_ms: int | None = None
    idle_ms: int | None = None
    has_own_time: bool = True
    is_arrival: bool = False
    ahead_ms: int | None = None


def window_of(window: JoinWindowMap) -> Window:
    """The window that a mapping describes, with defaults for missing parameters.

    >>> window_of(JoinWindowMap(kind=JoinWindowKind.TUMBLING, parameters=(("size", "500"),)))
    Tumbling(size_ms=500)

    Raises:
        MappingError: the parameters contradict each other, or name an unknown policy.
    """
    try:
        match window.kind:
            case JoinWindowKind.TUMBLING | JoinWindowKind.CROSS:
                return Tumbling(**_lengths(window, size="size_ms"))
            case JoinWindowKind.SLIDING:
                return Sliding(**_lengths(window, size="size_ms", slide="slide_ms"))
            case JoinWindowKind.INTERVAL:
                return Interval(**_lengths(window, distance="distance_ms"))
            case JoinWindowKind.DYNAMIC | JoinWindowKind.CUSTOM:
                return Dynamic(_policy(window))
    except PlanError as error:
        raise MappingError(
            error.message, detail=error.detail, hint=error.hint, span=window.span
        ) from None


def timing_of(window: JoinWindowMap, child: StreamTime, parent: StreamTime) -> JoinTiming:
    """How late the records of both sides may be.

    >>> timing_of(JoinWindowMap(kind=JoinWindowKind.TUMBLING), StreamTime(), StreamTime("t"))
    JoinTiming(delay_ms=(1000, 10000), idle_ms=60000)
    """
    given = window.parameter("delay")
    delays = [
        int(given) if given is not None else _delay(window, each, is_parent=bool(place))
        for place, each in enumerate((child, parent))
    ]
    idle = window.parameter("idle")
    known = [each.idle_ms for each in (child, parent) if each.idle_ms is not None]
    return JoinTiming(
        (delays[0], delays[1]), int(idle) if idle is not None else max(known, default=IDLE_MS)
    )


def time_reference(window: JoinWindowMap, *, is_parent: bool) -> str | None:
    """The reference that holds the time of one side's records, by the window.

    `qw:timestamp` counts for both, unless `qw:parentTimestamp` says otherwise for the parent.
    """
    own = window.parameter("parentTimestamp") if is_parent else None
    return own if own is not None else window.parameter("timestamp")


def _delay(window: JoinWindowMap, stream: StreamTime, *, is_parent: bool) -> int:
    if stream.delay_ms is not None:
        return stream.delay_ms
    reference = time_reference(window, is_parent=is_parent) or stream.reference
    return ARRIVAL_DELAY_MS if reference is None else DELAY_MS


def shown_key(key: str) -> str:
    """The values of a key for display, without lengths and types.

    >>> shown_key('2:=74:"A12')
    '7, A12'
    """
    found = []
    while key:
        length, _, rest = key.partition(":")
        if not length.isdigit():
            return key
        found.append(rest[1 : int(length)])
        key = rest[int(length) :]
    return ", ".join(found)


def _lengths(window: JoinWindowMap, **names: str) -> dict[str, int]:
    found = {field: window.parameter(name) for name, field in names.items()}
    return {field: int(text) for field, text in found.items() if text is not None}


def _policy(window: JoinWindowMap) -> Policy:
    count, variant = window.parameter("count"), window.parameter("variant")
    if variant is not None and variant not in _VARIANTS:
        raise PlanError(
            f"qw:variant is {variant!r}, which is not a variant of the dynamic window",
            hint=f"Use one of {', '.join(_VARIANTS)}.",
        )
    given: dict[str, Any] = {
        field: int(float(text)) if name in _WHOLE else float(text)
        for name, field in _POLICY.items()
        if (text := window.parameter(name)) is not None
    }
    if count is not None:
        given["limit"] = int(float(count))
    name = window.policy or ("count" if count is not None else variant or DEFAULT)
    policy = named(name)
    longest = given.get("max_size_ms")
    if longest is not None and "size_ms" not in given and policy.size_ms > longest:
        given["size_ms"] = longest
    elif longest is None and given.get("size_ms", 0) > policy.max_size_ms:
        given["max_size_ms"] = given["size_ms"]
    return configured(policy, **given)
