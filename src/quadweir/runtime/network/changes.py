"""What changes in a network between two batches, and what a shard journals about a batch.

A change reaches every shard together with the rows of the batch from which it applies. The shard
journals it with these rows, so a shard that is brought back from its journal sees the same queries
in the same batches as before. Nothing in it is code: it is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, final

from quadweir.errors import StateError

# No Arrow stream and no dead letter begins like these.
_CHANGE: Final = b"network change\n"
_NOTE: Final = b"network batch\n"

T = TypeVar("T")

UnitKey = tuple[int, int]
"""A template, and the instant at which its members joined; ALWAYS if they may differ in it."""


@final
@dataclass(frozen=True, slots=True)
class Joining:
    """Queries of one template that join together.

    Attributes:
        template: the number of the template.
        numbers: the numbers of the queries.
        constants: the spellings of each query's constants, in the order of the parameters.
        ranges: the lengths of each query's windows, where these may differ.
        backfilled: the numbers of those that see what windows hold already, if they can (J5).
    """

    template: int
    numbers: tuple[int, ...]
    constants: tuple[tuple[str, ...], ...]
    ranges: tuple[tuple[int, ...], ...]
    backfilled: tuple[int, ...] = ()

    def pick(self, numbers: Collection[int]) -> Joining:
        """Return only the queries with these numbers."""
        kept = [place for place, number in enumerate(self.numbers) if number in numbers]
        return replace(
            self,
            numbers=tuple(self.numbers[place] for place in kept),
            constants=tuple(self.constants[place] for place in kept),
            ranges=tuple(self.ranges[place] for place in kept),
        )


@final
@dataclass(frozen=True, slots=True)
class NetworkChange:
    """What is different from one batch on.

    Attributes:
        version: the version of the registry that applies.
        bits: for each template, the numbers of its tests in the bits of a row; None if as before.
        joining: the queries that join.
        leaving: the numbers of the queries that leave.
        stopped: the numbers of those of them that failed; nobody sees what they hold.
        paused: the numbers of the queries that give no answers for now.
        resumed: the numbers of paused queries that give answers again.
    """

    version: int
    bits: Mapping[int, tuple[int, ...]] | None = None
    joining: tuple[Joining, ...] = ()
    leaving: tuple[int, ...] = ()
    paused: tuple[int, ...] = ()
    resumed: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """Write it as a blob."""
        return _CHANGE + json.dumps(self._table()).encode()

    def _table(self) -> dict[str, object]:
        return {
            "version": self.version,
            "bits": None if self.bits is None else {str(k): v for k, v in self.bits.items()},
            "joining": [
                [each.template, each.numbers, each.constants, each.ranges, each.backfilled]
                for each in self.joining
            ],
            "leaving": self.leaving,
            "paused": self.paused,
            "resumed": self.resumed,
            "stopped": self.stopped,
        }


@final
@dataclass(slots=True)
class BatchNote:
    """What a shard journals about a batch besides its rows.

    Attributes:
        change: what applies from this batch on, if anything does.
        since: for each template that queries join, the instant at which they do (J1).
        through: for each unit, the instant through which it went.
        failed: the units that failed in this batch, and why.
        held: for each template that queries join, a name of what its shards hold.
    """

    change: NetworkChange | None = None
    since: dict[int, int] = field(default_factory=dict)
    through: dict[UnitKey, int] = field(default_factory=dict)
    failed: dict[UnitKey, str] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Write it as a blob."""
        table = {
            "change": None if self.change is None else self.change._table(),
            "since": {str(template): at for template, at in self.since.items()},
            "through": [[*key, at] for key, at in self.through.items()],
            "failed": [[*key, why] for key, why in self.failed.items()],
            "held": {str(template): name for template, name in self.held.items()},
        }
        return _NOTE + json.dumps(table).encode()


def split_change(blobs: Iterable[bytes]) -> tuple[NetworkChange | None, list[bytes]]:
    """Split the blobs of a batch into its change, if there is one, and the rest.

    >>> split_change([NetworkChange(3, leaving=(7,)).to_bytes(), b"rows"])[0].leaving
    (7,)
    """
    change, others = None, []
    for blob in blobs:
        if blob.startswith(_CHANGE):
            change = _change(json.loads(blob[len(_CHANGE) :]))
        else:
            others.append(blob)
    return change, others


def split_note(blobs: Iterable[bytes]) -> tuple[BatchNote, list[bytes]]:
    """Split what was journaled of a batch into the note and the rest.

    Raises:
        StateError: there is no note.
    """
    first, *others = blobs
    if not first.startswith(_NOTE):
        raise StateError(
            "a journal that was not written by a network",
            hint="Start with a new checkpoint folder.",
        )
    table = json.loads(first[len(_NOTE) :])
    found = BatchNote(
        None if table["change"] is None else _change(table["change"]),
        {int(template): at for template, at in table["since"].items()},
        {(template, since): at for template, since, at in table["through"]},
        {(template, since): why for template, since, why in table["failed"]},
        {int(template): name for template, name in table.get("held", {}).items()},
    )
    return found, others


def _change(table: dict[str, Any]) -> NetworkChange:
    bits = table["bits"]
    return NetworkChange(
        table["version"],
        None if bits is None else {int(each): tuple(places) for each, places in bits.items()},
        tuple(
            Joining(template, tuple(numbers), _rows(constants), _rows(ranges), *map(tuple, rest))
            for template, numbers, constants, ranges, *rest in table["joining"]
        ),
        tuple(table["leaving"]),
        tuple(table["paused"]),
        tuple(table["resumed"]),
        tuple(table.get("stopped", [])),
    )


def _rows(given: Iterable[Iterable[T]]) -> tuple[tuple[T, ...], ...]:
    return tuple(map(tuple, given))
