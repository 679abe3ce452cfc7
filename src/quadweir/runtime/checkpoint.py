"""What a checkpoint says about itself, and when it is refused.

Spark would use the state of another query as if it belonged to this one.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.errors import StateError
from quadweir.plan.query import QueryPlan
from quadweir.private import make_folder, replaced

NAME: Final = "quadweir.json"
VERSION: Final = 9
"""The version of stored state; it grows whenever older state can no longer be read."""
_MOST_LINES: Final = 30

DRIVER: Final = "driver"
EXECUTORS: Final = "executors"
"""Where shards are: in local worker processes, or in Spark's executors and its state store."""


@final
@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the state of a query depends on.

    Attributes:
        algebra: the query, as text.
        shards: how many shards hold its state.
        partitions: over how many partitions of Spark they are spread.
        static: the digest of its static data.
        version: the version of stored state.
        schema: the digest of its schema.
        layout: how its rows are sharded, in words (`ShardKey.layout`).
        held: the digest of what its shards hold (`QueryPlan.held`).
        inputs: the same for the queries whose answers it reads.
        shards_in: where its shards are, `DRIVER` or `EXECUTORS`.
        most: how many shards were asked for; `shards` is 1 if the plan cannot use more.
    """

    algebra: str
    shards: int
    partitions: int
    static: str
    version: int = VERSION
    schema: str = ""
    layout: str = ""
    held: str = ""
    inputs: tuple[Fingerprint, ...] = ()
    shards_in: str = EXECUTORS
    most: int = field(default=0, compare=False)

    @staticmethod
    def of(
        plan: QueryPlan,
        *,
        shards: int,
        partitions: int,
        static: str,
        schema: str = "",
        inputs: tuple[Fingerprint, ...] = (),
        shards_in: str = EXECUTORS,
    ) -> Fingerprint:
        return Fingerprint(
            render(plan.query),
            plan.shards(shards)[0],
            partitions,
            static,
            schema=schema,
            layout=plan.layout,
            held=hashlib.sha256(plan.held.encode()).hexdigest(),
            inputs=inputs,
            shards_in=shards_in,
            most=shards,
        )

    @staticmethod
    def left_in(checkpoint: Path) -> Fingerprint | None:
        """Return what a checkpoint was made for; None if it is new.

        Raises:
            StateError: the file cannot be read.
        """
        file = checkpoint / NAME
        if not file.is_file():
            return None
        try:
            table = json.loads(file.read_text(encoding="utf-8"))
            digest = table.pop("digest")
            # Another release may compute its digest in another way; its version is refused anyway.
            if table["version"] == VERSION and digest != _digest(table):
                raise ValueError("its digest does not fit: it was changed")
            return _read(table)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{file} cannot be read",
                detail=str(error),
                hint="Start with a new checkpoint folder.",
            ) from error

    @property
    def digest(self) -> str:
        """A SHA-256 of everything."""
        return _digest(self._table())

    def is_but_for_static(self, other: Fingerprint) -> bool:
        """Return whether only static data differs, its own or that of queries that it reads."""
        return self._without_static() == other._without_static()

    def _without_static(self) -> Fingerprint:
        inputs = tuple(each._without_static() for each in self.inputs)
        return replace(self, static="", inputs=inputs)

    def _table(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "algebra": self.algebra,
            "shards": self.shards,
            "partitions": self.partitions,
            "static": self.static,
            "schema": self.schema,
            "layout": self.layout,
            "held": self.held,
            "inputs": [each._table() for each in self.inputs],
            "shards_in": self.shards_in,
        }

    def _note(self) -> dict[str, Any]:
        """Return what is stored: what is compared, and how many shards were asked for."""
        inputs = [each._note() for each in self.inputs]
        return {**self._table(), "inputs": inputs, "most": self.most}

    def guard(self, checkpoint: Path, *, reload_static: bool = False) -> None:
        """Refuse a checkpoint that was made for something else; claim a new one.

        Args:
            checkpoint: its folder.
            reload_static: whether static data may differ.

        Raises:
            StateError: the checkpoint belongs to another query, or to the same one with other
                settings; the error says what differs.
        """
        known = Fingerprint.left_in(checkpoint)
        if known is not None:
            _check_batches(checkpoint)
            if known == self:
                return
            if not (reload_static and self.is_but_for_static(known)):
                raise self._refusal(known, checkpoint)
            self.replace_static(checkpoint)
            return
        _refuse_foreign(checkpoint)
        self._write(checkpoint)

    def with_plan(self, plan: QueryPlan) -> Fingerprint:
        """Return the same with the layout of another plan of the query."""
        held = hashlib.sha256(plan.held.encode()).hexdigest()
        return replace(self, layout=plan.layout, held=held)

    def check_plan(self, plan: QueryPlan, checkpoint: Path) -> None:
        """Refuse a plan that a checkpoint says it has, but that is not that of its query.

        Raises:
            StateError: it is another one; the error says what differs.
        """
        now = replace(self, algebra=render(plan.query)).with_plan(plan)
        if now != self:
            raise now._refusal(self, checkpoint)

    @staticmethod
    def check_query(checkpoint: Path, optimized: ContinuousQuery) -> None:
        """Refuse a checkpoint of another query, before this one is planned.

        Raises:
            StateError: it belongs to another query; the error says what differs.
        """
        Fingerprint._check(checkpoint, render(optimized))

    @staticmethod
    def check_network(checkpoint: Path, streams: Iterable[str]) -> None:
        """Refuse a checkpoint of a single query, or of a network over other streams.

        Raises:
            StateError: it belongs to something else; the error says what differs.
        """
        Fingerprint._check(checkpoint, network_algebra(streams))

    @staticmethod
    def _check(checkpoint: Path, algebra: str) -> None:
        known = Fingerprint.left_in(checkpoint)
        if known is None:
            _refuse_foreign(checkpoint)
            return
        now = replace(known, algebra=algebra, version=VERSION)
        if now != known:
            raise now._refusal(known, checkpoint)

    def replace_static(self, checkpoint: Path) -> None:
        """Record that static data has changed."""
        self._write(checkpoint)

    def _write(self, checkpoint: Path) -> None:
        file = checkpoint / NAME
        make_folder(checkpoint)
        note = self._note()
        table = {**note, "digest": _digest(note)}
        with replaced(file) as scratch:
            scratch.write_text(json.dumps(table, indent=1), encoding="utf-8")

    def _refusal(self, known: Fingerprint, checkpoint: Path) -> StateError:
        hint = "Start with a new checkpoint folder, or run what it was made for."
        if known.version == self.version and known.algebra == self.algebra:
            if self.is_but_for_static(known):
                hint = (
                    "Start it with --reload-static (in Python: start(..., reload_static=True)) to continue "
                    "with the new data, or restore the old data."
                )
            elif known.shards_in != self.shards_in:
                hint = (
                    f"Run it with --shards-in {known.shards_in}, on a master that supports it; or move its "
                    f"state first: quadweir checkpoint move {checkpoint} --to {self.shards_in}"
                )
            elif (known.most, known.partitions) != (self.most, self.partitions):
                hint = (
                    f"Run it with --shards {known.most}; or divide its state first: "
                    f"quadweir checkpoint reshard {checkpoint} --shards {self.most}"
                )
        return StateError(
            f"the checkpoint {checkpoint} was made for something else",
            detail="; ".join(self._changes(known)),
            hint=hint,
        )

    def _changes(self, known: Fingerprint) -> list[str]:
        """Say what has changed."""
        if known.version != self.version:
            return [f"its state has format {known.version}, this release {self.version}"]
        changed = []
        if known.algebra != self.algebra:
            diff = difflib.unified_diff(
                known.algebra.splitlines(), self.algebra.splitlines(), lineterm="", n=1
            )
            lines = list(diff)[2:]
            cut = lines[:_MOST_LINES] + (["..."] if len(lines) > _MOST_LINES else [])
            changed.append("the query differs:\n" + "\n".join(cut))
        elif known.shards_in != self.shards_in:
            where = {DRIVER: "in local worker processes", EXECUTORS: "in Spark's executors"}
            changed.append(
                f"its shards were {where[known.shards_in]}, and now they would be "
                f"{where[self.shards_in]}"
            )
        elif (known.shards, known.partitions) != (self.shards, self.partitions) and (
            known.layout == self.layout or known.most != self.most
        ):
            over = [
                f" over {each.partitions} partitions" * bool(each.partitions)
                for each in (known, self)
            ]
            changed.append(
                f"it has {known.shards} shards{over[0]}, and now there would be {self.shards}{over[1]}"
            )
        elif known.layout != self.layout:
            changed.append(
                f"it was sharded {known.layout or 'in another way'}, this query is sharded {self.layout}"
            )
        elif known.held != self.held:
            changed.append("its shards hold rows of another plan of the query")
        if known.static != self.static:
            changed.append("the static data of the query has changed")
        if known.schema != self.schema:
            changed.append("the schema has changed")
        if known.inputs != self.inputs:
            changed.append("a query that feeds it has changed" + self._input_changes(known))
        return changed

    def _input_changes(self, known: Fingerprint) -> str:
        if len(known.inputs) != len(self.inputs):
            return ""
        pairs = zip(self.inputs, known.inputs, strict=True)
        return "".join(f": {'; '.join(now._changes(then))}" for now, then in pairs if now != then)


def network_algebra(streams: Iterable[str]) -> str:
    """Return what stands for a network in place of an algebra: its streams; queries come and go."""
    return "\n".join(("network", *(f"  stream <{iri}>" for iri in sorted(streams))))


def is_network(algebra: str) -> bool:
    """Return whether what a checkpoint says of its query stands for a network."""
    return algebra.partition("\n")[0] == "network"


def _refuse_foreign(checkpoint: Path) -> None:
    if (checkpoint / "offsets").exists():
        raise StateError(
            f"{checkpoint} is a checkpoint of Spark, but not of a Quadweir query",
            hint="Start with a new checkpoint folder.",
        )


def _check_batches(checkpoint: Path) -> None:
    """Refuse a checkpoint in which a batch is committed that never began.

    Spark would repeat the last batch that it knows, and then give new batches the numbers of those that
    a sink already has: their answers would be lost.

    Raises:
        StateError: a file of Spark is missing.
    """
    begun, done = (
        max((int(each.name) for each in (checkpoint / name).glob("[0-9]*")), default=-1)
        for name in ("offsets", "commits")
    )
    if done > begun:
        raise StateError(
            f"{checkpoint / 'offsets'} lacks the file of batch {done}, which is committed",
            detail="Some files of the checkpoint are missing.",
            hint="Restore the checkpoint from a backup, or start with a new one.",
        )


def _digest(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _read(table: Mapping[str, Any]) -> Fingerprint:
    if table["version"] != VERSION:
        # The rest has another form; the version alone is reason enough to refuse it.
        return Fingerprint(
            str(table["algebra"]), 0, 0, str(table["static"]), version=int(table["version"])
        )
    return Fingerprint(
        table["algebra"],
        table["shards"],
        table["partitions"],
        table["static"],
        table["version"],
        table["schema"],
        table["layout"],
        table["held"],
        tuple(map(_read, table["inputs"])),
        # Before there were other hosts, this was the only one.
        table.get("shards_in", EXECUTORS),
        table["most"],
    )
