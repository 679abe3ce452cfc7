"""What a checkpoint was made for, written beside it, so that it is not used for anything else.

Spark would take up the state of another query as if it were this one's.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.errors import StateError
from quadweir.plan.query import QueryPlan
from quadweir.private import make_folder, replaced

NAME: Final = "quadweir.json"
VERSION: Final = 8
"""Counts up whenever older state, or the note about it, cannot be read any more."""
_MOST_LINES: Final = 30

DRIVER: Final = "driver"
EXECUTORS: Final = "executors"
"""Where shards are: in processes beside the driver, or in Spark's executors and its state store."""


@final
@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the state of a query depends on.

    Attributes:
        algebra: the query, as text.
        shards: how many parts its state is cut into.
        partitions: over how many of Spark's they are spread.
        static: the digest of what it finds in static data.
        version: of the form of state.
        schema: the digest of its schema.
        layout: how its rows are sharded, in words (`ShardKey.layout`).
        held: the digest of what its shards hold (`QueryPlan.held`).
        inputs: the same of the queries whose answers it reads.
        shards_in: where its shards are, `DRIVER` or `EXECUTORS`.
        most: how many shards there might have been; `shards` is 1 if the plan has use for one only.
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
        """Read what a checkpoint was made for; None if it is new.

        Raises:
            StateError: that cannot be read.
        """
        file = checkpoint / NAME
        if not file.is_file():
            return None
        try:
            table = json.loads(file.read_text(encoding="utf-8"))
            told = table.pop("digest")
            # Another release may have made its digest in another way; its version is refused anyway.
            if table["version"] == VERSION and told != _digest(table):
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
        """SHA-256 over all of it."""
        return _digest(self._table())

    def is_but_for_static(self, other: Fingerprint) -> bool:
        """Tell whether static data, its own or that of queries it reads, is all that differs."""
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
        """Give what is written down: what is compared, and from how many shards was chosen."""
        inputs = [each._note() for each in self.inputs]
        return {**self._table(), "inputs": inputs, "most": self.most}

    def guard(self, checkpoint: Path, *, reload_static: bool = False) -> None:
        """Refuse a checkpoint that was made for something else; claim one that is new.

        Args:
            checkpoint: Its folder.
            reload_static: Whether static data may be another than it was made for.

        Raises:
            StateError: the checkpoint belongs to another query, or to the same one run otherwise;
                the error says what differs.
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

    @staticmethod
    def check_query(checkpoint: Path, optimized: ContinuousQuery) -> None:
        """Refuse a checkpoint of another query, before anything else is known of this one.

        Raises:
            StateError: it is; the error says what differs.
        """
        known = Fingerprint.left_in(checkpoint)
        if known is None:
            _refuse_foreign(checkpoint)
            return
        now = replace(known, algebra=render(optimized), version=VERSION)
        if now != known:
            raise now._refusal(known, checkpoint)

    def replace_static(self, checkpoint: Path) -> None:
        """Note that static data is another from now on."""
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
                    "Start it with --reload-static, start(..., reload_static=True) in Python, to go on "
                    "with the new data; or with the data that it had."
                )
            elif known.shards_in != self.shards_in:
                hint = (
                    f"Run it with --shards-in {known.shards_in}, on a master that suits that; or start "
                    "anew with another checkpoint, which reads the streams from their beginning."
                )
            elif (known.most, known.partitions) != (self.most, self.partitions):
                hint = (
                    f"Run it with --shards {known.most}; or start anew with another checkpoint, "
                    "which reads the streams from their beginning."
                )
        return StateError(
            f"the checkpoint {checkpoint} was made for something else",
            detail="; ".join(self._changes(known)),
            hint=hint,
        )

    def _changes(self, known: Fingerprint) -> list[str]:
        """Say what is not as it was."""
        if known.version != self.version:
            return [f"its state has format {known.version}, this release {self.version}"]
        changed = []
        if known.algebra != self.algebra:
            diff = difflib.unified_diff(
                known.algebra.splitlines(), self.algebra.splitlines(), lineterm="", n=1
            )
            lines = list(diff)[2:]
            cut = lines[:_MOST_LINES] + (["..."] if len(lines) > _MOST_LINES else [])
            changed.append("the query is another one:\n" + "\n".join(cut))
        elif known.shards_in != self.shards_in:
            told = {DRIVER: "beside the driver", EXECUTORS: "in Spark's executors"}
            changed.append(
                f"its shards were {told[known.shards_in]}, and now are to be {told[self.shards_in]}"
            )
        elif (known.shards, known.partitions) != (self.shards, self.partitions) and (
            known.layout == self.layout or known.most != self.most
        ):
            over = [
                f" over {each.partitions} partitions" * bool(each.partitions)
                for each in (known, self)
            ]
            changed.append(
                f"its state is cut into {known.shards} shards{over[0]}, "
                f"and now there are to be {self.shards}{over[1]}"
            )
        elif known.layout != self.layout:
            changed.append(
                f"its rows were sharded {known.layout or 'otherwise'}, and now {self.layout}"
            )
        elif known.held != self.held:
            changed.append("its shards held other rows than they would now")
        if known.static != self.static:
            changed.append("what the query finds in static data is not what it was")
        if known.schema != self.schema:
            changed.append("the schema is not what it was")
        if known.inputs != self.inputs:
            changed.append("a query that feeds it is not what it was" + self._input_changes(known))
        return changed

    def _input_changes(self, known: Fingerprint) -> str:
        if len(known.inputs) != len(self.inputs):
            return ""
        pairs = zip(self.inputs, known.inputs, strict=True)
        return "".join(f": {'; '.join(now._changes(then))}" for now, then in pairs if now != then)


def _refuse_foreign(checkpoint: Path) -> None:
    if (checkpoint / "offsets").exists():
        raise StateError(
            f"{checkpoint} is the checkpoint of something that is no query of ours",
            hint="Start with a new checkpoint folder.",
        )


def _check_batches(checkpoint: Path) -> None:
    """Refuse a checkpoint in which batches are done that were never begun.

    Spark would begin the last one that it knows of again, and then number other batches like those that
    a sink has already: their answers would be lost.

    Raises:
        StateError: a file of Spark's is missing.
    """
    begun, done = (
        max((int(each.name) for each in (checkpoint / name).glob("[0-9]*")), default=-1)
        for name in ("offsets", "commits")
    )
    if done > begun:
        raise StateError(
            f"{checkpoint / 'offsets'} lacks the file of batch {done}, which is done",
            detail="Some files of the checkpoint are missing.",
            hint="Put the checkpoint back as it was, or start with a new one.",
        )


def _digest(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _read(table: Mapping[str, Any]) -> Fingerprint:
    if table["version"] != VERSION:
        # What else it says was said in another form; the version alone is reason enough.
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
        # Before there were others they all were there.
        table.get("shards_in", EXECUTORS),
        table["most"],
    )
