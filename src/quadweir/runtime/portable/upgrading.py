"""A stopped checkpoint for another text of its query: what both have in common is kept.

Plans are compared by what their windows hold (`plan/inherit.py`). The windows of the old shards are brought
up to date, become windows of the new plan, and are divided by its key, as for another number of shards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.errors import StateError
from quadweir.kernel.dividing import DividedState
from quadweir.kernel.takeover import upgraded
from quadweir.plan.inherit import Inheritance, inherit
from quadweir.plan.query import QueryPlan
from quadweir.runtime.checkpoint import Fingerprint
from quadweir.runtime.claims import NAME as LOCK
from quadweir.runtime.match.rowtimes import event_times
from quadweir.runtime.portable.checkpoints import StoppedCheckpoint
from quadweir.runtime.portable.dividing import (
    offline_spec,
    places_of_key,
    read_shard,
    shares,
    void,
)
from quadweir.runtime.shard.journal import KeptShard

if TYPE_CHECKING:
    from quadweir.runtime.planned import PlannedQuery

_NEW: Final = "Start with a new checkpoint folder, which reads the streams from their beginning."


def inherited_shards(
    before: QueryPlan,
    after: QueryPlan,
    inherited: Inheritance,
    kept: Sequence[KeptShard],
    counts: Sequence[int],
) -> list[list[KeptShard]]:
    """Return for each stage of a new plan what its shards keep.

    Args:
        before: the plan of the checkpoint.
        after: the new plan.
        inherited: what it continues with.
        kept: what the shards of the old first stage kept.
        counts: the number of new shards of each stage.

    Raises:
        StateError: the state is damaged, or of another plan.
    """
    if kept[0].note is None:
        return [[KeptShard(kept[0].batch, None, None, ())] * count for count in counts]
    old, new = offline_spec(before, len(kept)), offline_spec(after, counts[0])
    shards = [read_shard(old, number, each).kernel for number, each in enumerate(kept)]
    states = [upgraded(each, new.make(), inherited) for each in shards]
    places = places_of_key(before)
    were = [None if each is None else places[each.place] for each in inherited.leaves]
    state = DividedState(new.make(), states, places_of_key(after), were)
    through = shards[0].through
    first = shares(state, kept[0], through, counts[0])
    return [first, *([void(kept[0], through)] * count for count in counts[1:])]


def upgrade(
    folder: Path,
    query: PlannedQuery,
    *,
    allow_loss: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Path | None:
    """Make a checkpoint one of another query, with the state that both have in common.

    Args:
        folder: the checkpoint.
        query: the query that is to continue.
        allow_loss: whether windows may begin without all that they would have.
        warn: takes what is lost.

    Returns:
        Where the old checkpoint is now; None if it was for this query already.

    Raises:
        StateError: the checkpoint is in use or damaged; or something would be lost, and the error
            says what.
        UnsupportedError: the query reads answers of others, or it is a network.
    """
    with StoppedCheckpoint(folder, spark=lambda: query.spark, say=lambda _: None) as stopped:
        known, before = stopped.fingerprint, stopped.plan.plan
        # Rows may stay where they are, if the new plan can be divided like the old one.
        query.settle(known)
        now = query.fingerprint(known.shards_in, known.partitions)
        if now.algebra == known.algebra:
            return None
        after = query.plan
        _check(folder, known, now, before, after)
        inherited = inherit(before, after)
        if inherited.losses and not allow_loss:
            raise StateError(
                f"the query cannot continue with all of its state in {folder}",
                detail="\n".join(f"- {each}" for each in inherited.losses),
                hint="Add --allow-loss (in Python: allow_loss=True) to start all the same. Or start with a "
                "new checkpoint folder, which reads the streams from their beginning.",
            )
        for each in inherited.losses:
            warn(each)
        kept = inherited_shards(
            before, after, inherited, stopped.kept()[0], after.shards(query.most_shards)
        )
        old = stopped.write(None, now, query.stored_plan, kept)
        if old is not None:
            # Whoever holds the old folder holds the new one.
            (folder / LOCK).unlink(missing_ok=True)
            os.link(old / LOCK, folder / LOCK)
        return old


def _check(
    folder: Path, known: Fingerprint, now: Fingerprint, before: QueryPlan, after: QueryPlan
) -> None:
    """Refuse what no state can be kept for."""
    streams = [list(event_times(plan)) for plan in (before, after)]
    reason = ""
    if now.inputs:
        reason = "the new query reads the answers of another query"
    elif streams[0] != streams[1]:
        was, is_now = (", ".join(f"<{each}>" for each in found) for found in streams)
        reason = (
            f"it reads {was}, and the new query {is_now}; Spark knows the streams of a checkpoint by "
            "their order"
        )
    elif known.schema != now.schema:
        reason = "the schema has changed, so other statements would be in the windows"
    elif known.most != now.most:
        reason = f"it has {known.most} shards, and the new query {now.most}"
    if reason:
        raise StateError(
            f"the checkpoint {folder} cannot be upgraded to this query", detail=reason, hint=_NEW
        )
