"""What the shards of a query keep, for another number of shards.

The windows of all shards of the first stage are brought up to date, put together, and divided again by
the shard key. Nothing else of the plan runs, so neither static data nor the functions of users are
needed. The new snapshots say that they were made over other static data: a shard that reads one makes
everything else of its windows again, and the first stage sends the second all that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from quadweir.algebra.dataset import Dataset
from quadweir.errors import StateError
from quadweir.kernel.codec import StateKind, write_frame
from quadweir.kernel.dividing import DividedState
from quadweir.kernel.staticrelations import Loaded
from quadweir.plan.nodes import Exchange, Union
from quadweir.plan.program import Program
from quadweir.plan.query import QueryPlan
from quadweir.runtime.shard.clock import StreamClock
from quadweir.runtime.shard.hosted import HostedShard, snapshot_over, snapshot_through
from quadweir.runtime.shard.journal import KeptShard, replay, unpack_entry
from quadweir.runtime.shard.spec import ShardSpec

MOVED: Final = "moved"
"""Stands for the digest of static data in snapshots that were divided; it is never that of real data."""
_OFFLINE: Final = "offline"
_NO_QUERY: Final = bytes(32)


def divided(
    before: QueryPlan,
    after: QueryPlan,
    kept: Sequence[Sequence[KeptShard]],
    counts: Sequence[int],
) -> list[list[KeptShard]]:
    """Return for each stage what its new shards keep.

    Args:
        before: the plan that the old shards had, by which their logs are read.
        after: the plan that the new shards have; its windows are the same.
        kept: for each stage what its shards kept, in the order of shards.
        counts: the number of new shards of each stage.

    Raises:
        StateError: the state is damaged, or of another plan.
    """
    if [len(each) for each in kept] == list(counts):
        return [list(each) for each in kept]
    first, *others = kept
    return [
        _windows_divided(before, after, first, counts[0]),
        *([_void(stage[0])] * count for stage, count in zip(others, counts[1:], strict=True)),
    ]


def _windows_divided(
    before: QueryPlan, after: QueryPlan, kept: Sequence[KeptShard], count: int
) -> list[KeptShard]:
    if kept[0].note is None:
        return [KeptShard(kept[0].batch, None, None, ())] * count
    if after.matches != before.matches:
        raise StateError(
            "with another number of shards, the windows of the query would hold something else",
            hint="Run it with the number of shards that it has.",
        )
    spec = offline_spec(before, len(kept))
    shards = [read_shard(spec, number, each).kernel for number, each in enumerate(kept)]
    state = DividedState(shards[0], [each.arrays() for each in shards], places_of_key(after))
    return shares(state, kept[0], shards[0].through, count)


def shares(state: DividedState, last: KeptShard, through: int, count: int) -> list[KeptShard]:
    """Return what so many shards of the first stage keep.

    Args:
        state: their windows.
        last: one of the shards before.
        through: the instant through which these had come.
        count: the number of shards.
    """
    note = moved_note(last)
    frames = (
        write_frame(StateKind.SNAPSHOT, _NO_QUERY, state.share(number, count))
        for number in range(count)
    )
    return [
        KeptShard(last.batch, note, snapshot_over(MOVED, through, frame), ()) for frame in frames
    ]


def places_of_key(plan: QueryPlan) -> list[int | None]:
    """Return for each leaf of the first stage the place of the shard key among its variables.

    None stands for a leaf whose rows are in every shard.
    """
    key = plan.first.key
    return [
        match.variables.index(key)
        if key is not None and key in match.variables and place not in plan.trackers
        else None
        for place, match in enumerate(plan.matches)
    ]


def moved_note(kept: KeptShard) -> str | None:
    """Return the note of a shard for one that makes everything of its windows again."""
    if kept.note is None:
        return None
    return replace(StreamClock.of(kept.note), static=MOVED).as_text()


def read_shard(spec: ShardSpec, number: int, kept: KeptShard) -> HostedShard:
    """Return a shard of windows alone (`offline_spec`) as its journal has it."""
    hosted = spec.host(number)
    if kept.snapshot is not None:
        hosted.restore(kept.snapshot)
    replay(hosted, kept.entries, kept.note)
    return hosted


def offline_spec(plan: QueryPlan, shards: int) -> ShardSpec:
    """Return what makes first-stage shards that keep the windows of a query, and nothing else."""
    windows = windows_of(plan.first.program)
    is_unused = len(plan.trackers) == len(plan.matches)
    if is_unused or windows.matches != plan.matches or windows.trackers != plan.trackers:
        raise StateError(
            "the windows of the query cannot be kept without the rest of its plan",
            hint="Run it with the number of shards that it has.",
        )
    alone = replace(plan, stages=(replace(plan.first, program=windows),))
    return ShardSpec(alone, Loaded(Dataset()), _OFFLINE, shards=tuple(range(shards)))


def windows_of(program: Program) -> Program:
    """Return a program with the windows of another one, whose rows go nowhere."""
    used = tuple(each for n, each in enumerate(program.windows) if n not in program.trackers)
    return replace(program, sent=Exchange(Union(used), (), None), why_not=None)


def _void(kept: KeptShard) -> KeptShard:
    """Return what a shard of a later stage keeps until the stage before has sent everything again."""
    if kept.note is None:
        return KeptShard(kept.batch, None, None, ())
    if kept.entries:
        through = unpack_entry(kept.entries[-1])[0]
    else:
        assert kept.snapshot is not None, "a shard with a note has a snapshot or a log"
        through = snapshot_through(kept.snapshot)
    return void(kept, through)


def void(kept: KeptShard, through: int) -> KeptShard:
    """Return a shard of a later stage that has come to an instant and holds nothing."""
    return KeptShard(kept.batch, moved_note(kept), snapshot_over(MOVED, through, b""), ())
