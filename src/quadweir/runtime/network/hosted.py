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

from quadweir.errors import LimitError, QuadweirError, StateError, UnsupportedError
from quadweir.kernel.arrays import ALWAYS
from quadweir.plan.backfill import DONORS_FAILED, NO_DONORS
from quadweir.runtime.network.changes import (
    BatchNote,
    Joining,
    NetworkChange,
    UnitKey,
    split_change,
    split_note,
)
from quadweir.runtime.network.sharedunit import SharedUnit
from quadweir.runtime.network.spec import NETWORK_FACTS, OUTPUT, UNITS
from quadweir.runtime.network.unit import Unit, other_rows
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
        # Templates and queries that failed, with the reasons, until these queries leave.
        self._failed: list[tuple[int, list[int], str]] = []
        # Since when queries see elements that asked for backfill, and why they do not see more.
        self._backfilled: dict[int, tuple[int, str]] = {}
        self._unreported: set[int] = set()
        self._version = 0
        self._noted = BatchNote()

    # --- a batch ---

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - answers are named where they are delivered
        began = time.monotonic()
        change, blobs = split_change(blobs)
        letters, blobs = split_blobs(blobs)
        self._noted = note = BatchNote(change, self._since(change), held=self._held(change))
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
        backfilled = [[each, *self._backfilled[each]] for each in sorted(self._unreported)]
        self._unreported.clear()
        units = {"units": facts, "failed": self._failed, "backfilled": backfilled}
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

    def _held(self, change: NetworkChange | None) -> dict[int, str]:
        """Name what the shards of templates hold that queries join."""
        joining = change.joining if change is not None else ()
        return {each.template: self._template(each.template).held for each in joining}

    def _apply(self, note: BatchNote) -> None:
        """Let queries join and leave before a batch."""
        change = note.change
        if change is None:
            return
        self._version = change.version
        if change.bits is not None:
            self._bits = change.bits
        # Those that join may see what those that leave have held, unless these have failed.
        self._leave(change.stopped)
        for each in change.joining:
            if self._template(each.template).home in (None, self._key):
                self._join(each, note)
        self._leave(change.leaving)
        self._paused = (self._paused | {*change.paused}) - {*change.resumed, *change.leaving}
        for unit in self._units.values():
            unit.match(self._bits)

    def _leave(self, numbers: Sequence[int]) -> None:
        leaving = frozenset(numbers)
        self._failed = [
            (template, rest, why)
            for template, members, why in self._failed
            if (rest := [each for each in members if each not in leaving])
        ]
        for number in leaving & self._backfilled.keys():
            del self._backfilled[number]
            self._unreported.discard(number)
        for key, unit in list(self._units.items()):
            unit.leave(leaving)
            if not unit.templates:
                del self._units[key]

    def _join(self, joining: Joining, note: BatchNote) -> None:
        """Let queries of a template join."""
        template, joined = joining.template, note.since[joining.template]
        spec = self._template(template)
        if note.held.get(template, spec.held) != spec.held:
            self._failed.append((template, [*joining.numbers], str(other_rows())))
            return
        key = _unit_key(spec, joined)
        since: dict[UnitKey, dict[int, int]] = {key: {}}
        if joining.backfilled:
            if any(failed == template for failed, _, _ in self._failed):
                # Other shards do not know that yet, and what one shard does, all must do.
                self._failed.append((template, [*joining.backfilled], DONORS_FAILED))
                joining = joining.pick({*joining.numbers}.difference(joining.backfilled))
            since |= self._find_backfilled(joining, spec, joined)
        early = {number for each in since.values() for number in each}
        since[key] |= {number: joined for number in joining.numbers if number not in early}
        for own, each in since.items():
            part = joining.pick(each)
            if part.numbers:
                self._join_unit(own, part, each, note)

    def _join_unit(
        self, key: UnitKey, joining: Joining, since: Mapping[int, int], note: BatchNote
    ) -> None:
        template = joining.template
        spec = self._template(template)
        try:
            if key not in self._units:
                self._units[key] = self._unit(spec, key[1])
            self._units[key].join(spec, joining, since, note.since[template])
        except Exception as error:  # one bad query must not stop the others
            # Those of its template that joined before go, too.
            members = self._dropped(key, template)
            gone = [*dict.fromkeys((*members, *joining.numbers))]
            self._note_failure((template, key[1]), gone, _reason(error), note)

    def _find_backfilled(
        self, joining: Joining, spec: TemplateSpec, joined: int
    ) -> dict[UnitKey, dict[int, int]]:
        """Find the units that have what queries want to see, and since when these then see elements."""
        template = spec.number
        donors = {
            key: unit.donors(template)
            for key, unit in self._units.items()
            if template in unit.templates
        }
        found: dict[UnitKey, dict[int, int]] = {}
        asking = frozenset(joining.backfilled)
        for number, constants, ranges in zip(
            joining.numbers, joining.constants, joining.ranges, strict=True
        ):
            if number not in asking:
                continue
            best, reason = None, spec.not_backfilled or NO_DONORS
            if joined == ALWAYS:
                reason = ""  # nothing was there to see
            elif not spec.not_backfilled:
                for key, each in donors.items():
                    since, reason = each.find(constants, ranges)
                    if since is not None and (best is None or since < best[1]):
                        best = key, since
            self._backfilled[number] = (joined, reason) if best is None else (best[1], "")
            self._unreported.add(number)
            if best is not None:
                found.setdefault(best[0], {})[number] = best[1]
        return found

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
        self._failed.append((failed[0], members, reason))

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
                self._failed.append((template, members, why))
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
            "backfilled": [[number, *each] for number, each in self._backfilled.items()],
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
        self._failed = [(template, members, why) for template, members, why in head["failed"]]
        self._backfilled = {number: (at, why) for number, at, why in head.get("backfilled", [])}
        # The driver may have forgotten them.
        self._unreported = {*self._backfilled}
        for (template, since, described), size in zip(head["units"], lengths, strict=True):
            own, at = data[at : at + size], at + size
            members = described.get("templates") or [[template, described["members"]]]
            unit = self._unit(self._template(members[0][0]), since)
            if isinstance(unit, SharedUnit) and "templates" not in described:
                raise StateError(
                    f"the state of shard {self._key} was written by another release",
                    hint="Start with a new checkpoint.",
                )
            try:
                if isinstance(unit, SharedUnit):
                    unit.restore(described, self._spec.templates, own)
                else:
                    unit.restore(described, own)
            except UnsupportedError as error:
                self._failed += [
                    (each, [member[0] for member in theirs], _reason(error))
                    for each, theirs in members
                ]
                continue
            unit.match(self._bits)
            self._units[template, since] = unit


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
