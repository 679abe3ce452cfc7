"""One shard of a network, as a host runs it: with the queries that joined it, and their clock.

The shard keeps a *unit* for each template: a kernel shard, and the queries that it answers. Templates
of a group have one together, in which their joins run once. Units know nothing of each other. A
template that fails is dropped with its reason, and the others go on.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from quadweir.errors import LimitError, QuadweirError, StateError
from quadweir.kernel.arrays import ALWAYS
from quadweir.runtime.network.changes import (
    BatchNote,
    NetworkChange,
    UnitKey,
    split_change,
    split_note,
)
from quadweir.runtime.network.sharedunit import SharedUnit
from quadweir.runtime.network.spec import NETWORK_FACTS, OUTPUT, UNITS
from quadweir.runtime.network.unit import Unit
from quadweir.runtime.shard.clock import StreamClock
from quadweir.runtime.shard.facts import Fold
from quadweir.runtime.wire.deadletters import LETTER, split_blobs
from quadweir.runtime.wire.unpack import ArrivedRows

if TYPE_CHECKING:
    from quadweir.runtime.network.spec import NetworkSpec, TemplateSpec
    from quadweir.runtime.wire.unpack import Late

_SCHEMA: Final = to_arrow_schema(OUTPUT)
# The length of the head, which is JSON, and the number of units; then the length of each unit.
_HEAD: Final = struct.Struct("<QQ")


@final
class HostedNetwork:
    """A shard of a network that takes blobs and gives rows: `base.Hosted`.

    Args:
        spec: what its units are made from.
        key: its number among the shards.
    """

    def __init__(self, spec: NetworkSpec, key: int) -> None:
        self._spec = spec
        self._key = key
        self._clock = StreamClock()
        self._units: dict[UnitKey, Unit | SharedUnit] = {}
        self._bits: Mapping[int, tuple[int, ...]] = {}
        self._paused: set[int] = set()
        # The queries of units that failed, with the reasons, until these queries leave.
        self._failed: list[tuple[list[int], str]] = []
        self._version = 0
        self._noted = BatchNote()

    # --- a batch ---

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - answers are named where they are delivered
        began = time.monotonic()
        change, blobs = split_change(blobs)
        letters, blobs = split_blobs(blobs)
        self._noted = note = BatchNote(change, self._since(change))
        self._apply(note)
        now = self._clock.note(blobs)
        arrived = ArrivedRows.of(blobs)
        count = late = held = 0
        late_letters: dict[str, None] = {}
        facts: list[list[Any]] = []
        for key, unit in list(self._units.items()):
            reached = self._clock.reach(unit.streams, self._spec.timing, now)
            note.through[key] = through = max(unit.through, reached)
            stepped = unit.step(arrived, through, self._paused)
            for template, (members, error) in stepped.failed.items():
                self._note_failure((template, key[1]), members, _reason(error), note)
            missed = stepped.late.matches
            for template, part in stepped.parts.items():
                if (limit := self._too_large(part.held)) is not None:
                    members = unit.drop(template)
                    self._note_failure((template, key[1]), members, _reason(limit), note)
                    continue
                yield from part.batches
                count += part.answers
                held += part.held
                facts.append([template, part.answers, part.held, part.microseconds, missed])
                missed = 0
            late += stepped.late.matches
            # Each unit that asks for a late statement reports it.
            late_letters |= dict.fromkeys(stepped.late.letters)
            if not unit.templates:
                del self._units[key]
        letters += late_letters
        if letters:
            yield _letters(letters)
        units = {"units": facts, "failed": self._failed}
        reached_by_all = min((unit.through for unit in self._units.values()), default=None)
        yield _facts(
            {
                "answers": count,
                "late": late,
                "through": reached_by_all,
                "held": held,
                "kernel_ms": round((time.monotonic() - began) * 1000),
                "replayed": replayed,
                UNITS: json.dumps(units),
            }
        )

    def _since(self, change: NetworkChange | None) -> dict[int, int]:
        """Return the instant at which the queries of each template join: after all that was seen."""
        highest = self._clock.highest
        return {
            each.template: max(
                (highest.get(stream, ALWAYS) for stream in self._template(each.template).streams),
                default=ALWAYS,
            )
            for each in (change.joining if change is not None else ())
        }

    def _apply(self, note: BatchNote) -> None:
        """Let queries join and leave before a batch."""
        change = note.change
        if change is None:
            return
        self._version = change.version
        if change.bits is not None:
            self._bits = change.bits
        leaving = frozenset(change.leaving)
        self._paused = (self._paused | {*change.paused}) - {*change.resumed} - leaving
        self._failed = [
            (rest, why)
            for members, why in self._failed
            if (rest := [each for each in members if each not in leaving])
        ]
        for key, unit in list(self._units.items()):
            unit.leave(leaving)
            if not unit.templates:
                del self._units[key]
        for each in change.joining:
            spec = self._template(each.template)
            if spec.home not in (None, self._key):
                continue
            since = note.since[each.template]
            key = _unit_key(spec, since)
            try:
                if key not in self._units:
                    self._units[key] = self._unit(spec, key[1])
                self._units[key].join(spec, each, since)
            except Exception as error:  # one bad query must not stop the others
                # Those of its template that joined before go, too.
                members = self._dropped(key, each.template)
                gone = [*dict.fromkeys((*members, *each.numbers))]
                self._note_failure((each.template, key[1]), gone, _reason(error), note)
        for unit in self._units.values():
            unit.match(self._bits)

    def _unit(self, spec: TemplateSpec, since: int) -> Unit | SharedUnit:
        key = self._spec.shards.index(self._key) if spec.home is None else None
        if spec.group is not None:
            return SharedUnit(spec.shards.share(key), letters=self._spec.letters)
        return Unit(spec, since, key, letters=self._spec.letters)

    def _template(self, number: int) -> TemplateSpec:
        try:
            return self._spec.templates[number]
        except KeyError:
            raise StateError(
                f"the journal of shard {self._key} names a query that the network does not know",
                hint="Restore the checkpoint from a backup, or start with a new one.",
            ) from None

    def _too_large(self, held: int) -> LimitError | None:
        most = self._spec.most_held
        if most is None or held <= most:
            return None
        return LimitError(
            f"the query holds {held:,} mappings in one shard, and the limit is {most:,}",
            hint="Use shorter windows, or a higher limit for the network.",
        )

    def _dropped(self, key: UnitKey, template: int) -> list[int]:
        """Drop a template, if it is there, and return the numbers of its queries."""
        unit = self._units.get(key)
        if unit is None:
            return []
        members = unit.drop(template)
        if not unit.templates:
            del self._units[key]
        return members

    def _note_failure(
        self, failed: UnitKey, members: list[int], reason: str, note: BatchNote
    ) -> None:
        note.failed[failed] = reason
        self._failed.append((members, reason))

    # --- what survives ---

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        others = split_blobs(split_change(blobs)[1])[1]
        return [self._noted.to_bytes(), *others]

    def mark(self) -> int:
        return self._version

    def replay(self, blobs: list[bytes], mark: int) -> None:  # noqa: ARG002 - the note says more
        note, others = split_note(blobs)
        self._apply(note)
        arrived = ArrivedRows.of(others)
        for (template, since), why in note.failed.items():
            members = self._dropped(_unit_key(self._template(template), since), template)
            if members:
                self._failed.append((members, why))
        for key, through in note.through.items():
            if key in self._units:
                self._units[key].replay(arrived, through)

    def note(self) -> str:
        return self._clock.as_text()

    def resume(self, note: str) -> None:
        self._clock = StreamClock.of(note)

    def snapshot(self) -> bytes:
        units = [unit.snapshot() for unit in self._units.values()]
        head = {
            "version": self._version,
            "bits": {str(template): bits for template, bits in self._bits.items()},
            "paused": sorted(self._paused),
            "failed": self._failed,
            "units": [[*key, unit.described()] for key, unit in self._units.items()],
        }
        text = json.dumps(head).encode()
        lengths = struct.pack(f"<{len(units)}Q", *map(len, units))
        return b"".join((_HEAD.pack(len(text), len(units)), lengths, text, *units))

    def restore(self, data: bytes) -> None:
        length, count = _HEAD.unpack_from(data)
        lengths = struct.unpack_from(f"<{count}Q", data, _HEAD.size)
        at = _HEAD.size + 8 * count
        head, at = json.loads(data[at : at + length]), at + length
        self._version = head["version"]
        self._bits = {int(template): tuple(bits) for template, bits in head["bits"].items()}
        self._paused = {*head["paused"]}
        self._failed = [(members, why) for members, why in head["failed"]]
        for (template, since, described), size in zip(head["units"], lengths, strict=True):
            first, *_ = [each for each, _ in described.get("templates", [[template, []]])]
            unit = self._unit(self._template(first), since)
            if isinstance(unit, SharedUnit):
                if "templates" not in described:
                    raise StateError(
                        f"the state of shard {self._key} was written by another release",
                        hint="Start with a new checkpoint.",
                    )
                unit.restore(described, self._spec.templates, data[at : at + size])
            else:
                unit.restore(described, data[at : at + size])
            unit.match(self._bits)
            self._units[template, since] = unit
            at += size


def _unit_key(spec: TemplateSpec, since: int) -> UnitKey:
    """Return the key of the unit that answers queries of a template that joined at an instant."""
    if spec.group is not None:
        return spec.group, ALWAYS
    return spec.number, ALWAYS if spec.is_open else since


def _reason(error: Exception) -> str:
    if isinstance(error, QuadweirError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _letters(letters: Sequence[str]) -> pa.RecordBatch:
    return _rows(len(letters), {LETTER: pa.array(letters, pa.string())})


def _facts(facts: Mapping[str, Any]) -> pa.RecordBatch:
    kinds = {
        name: pa.string() if fold is Fold.LIST else pa.int64()
        for name, fold in NETWORK_FACTS.items()
    }
    return _rows(1, {name: pa.array([facts[name]], kind) for name, kind in kinds.items()})


def _rows(count: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return output rows; the columns that are not given are NULL."""
    return pa.RecordBatch.from_arrays(
        [columns.get(each.name, pa.nulls(count, each.type)) for each in _SCHEMA], schema=_SCHEMA
    )


__all__ = ["HostedNetwork", "Late"]
