"""What a checkpoint was made for, written beside it, so that it is not used for anything else.

Spark would take up the state of another query as if it were this one's.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

from quadweir.algebra.render import render
from quadweir.errors import StateError
from quadweir.plan.describe import shards_used
from quadweir.plan.query import QueryPlan

NAME: Final = "quadweir.json"
VERSION: Final = 5
"""Counts up whenever older state cannot be read any more."""
_MOST_LINES: Final = 30


@final
@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the state of a query depends on."""

    algebra: str
    shards: int
    partitions: int
    static: str
    version: int = VERSION
    schema: str = ""
    layout: str = ""
    inputs: str = ""

    @staticmethod
    def of(
        plan: QueryPlan,
        *,
        shards: int,
        partitions: int,
        static: str,
        schema: str = "",
        inputs: str = "",
    ) -> Fingerprint:
        used = shards_used(plan, shards)
        return Fingerprint(
            render(plan.query),
            used,
            partitions,
            static,
            schema=schema,
            layout=layout_of(plan),
            inputs=inputs,
        )

    @property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        return hashlib.sha256(json.dumps(self._table(), sort_keys=True).encode()).hexdigest()

    def _table(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "algebra": self.algebra,
            "shards": self.shards,
            "partitions": self.partitions,
            "static": self.static,
            "schema": self.schema,
            "layout": self.layout,
            "inputs": self.inputs,
        }

    def guard(self, checkpoint: Path, *, reload_static: bool = False) -> None:
        """Refuse a checkpoint that was made for something else; claim one that is new.

        Args:
            checkpoint: Its folder.
            reload_static: Whether static data may be another than it was made for.

        Raises:
            StateError: the checkpoint belongs to another query, or to the same one run otherwise;
                the error says what differs.
        """
        file = checkpoint / NAME
        if file.is_file():
            try:
                before = json.loads(file.read_text(encoding="utf-8"))
                known = Fingerprint(
                    before["algebra"],
                    before["shards"],
                    before["partitions"],
                    before["static"],
                    before["version"],
                    before.get("schema", ""),
                    before.get("layout", ""),
                    before.get("inputs", ""),
                )
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise StateError(
                    f"{file} cannot be read",
                    detail=str(error),
                    hint="Start with a new checkpoint folder.",
                ) from error
            if reload_static and replace(known, static=self.static) == self:
                self.replace_static(checkpoint)
            else:
                self._compare(known, checkpoint)
            return
        if (checkpoint / "offsets").exists():
            raise StateError(
                f"{checkpoint} is the checkpoint of something that is no query of ours",
                hint="Start with a new checkpoint folder.",
            )
        self._write(checkpoint)

    def replace_static(self, checkpoint: Path) -> None:
        """Note that static data is another from now on."""
        self._write(checkpoint)

    def _write(self, checkpoint: Path) -> None:
        file = checkpoint / NAME
        checkpoint.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{NAME}.new")
        table = {**self._table(), "digest": self.digest}
        scratch.write_text(json.dumps(table, indent=1), encoding="utf-8")
        scratch.replace(file)

    def _compare(self, known: Fingerprint, checkpoint: Path) -> None:
        if known == self:
            return
        changed, hint = [], "Start with a new checkpoint folder, or run what it was made for."
        if known.version != self.version:
            changed.append(f"its state has format {known.version}, this release {self.version}")
        if known.algebra != self.algebra:
            diff = difflib.unified_diff(
                known.algebra.splitlines(), self.algebra.splitlines(), lineterm="", n=1
            )
            lines = list(diff)[2:]
            cut = lines[:_MOST_LINES] + (["..."] if len(lines) > _MOST_LINES else [])
            changed.append("the query is another one:\n" + "\n".join(cut))
        elif known.layout != self.layout:
            changed.append(
                f"its rows were sharded {known.layout or 'otherwise'}, and now {self.layout}"
            )
        elif known.shards != self.shards or known.partitions != self.partitions:
            changed.append(
                f"its state is cut into {known.shards} shards over {known.partitions} partitions, "
                f"and now there are to be {self.shards} over {self.partitions}"
            )
            hint = (
                f"Run it with --shards {known.shards}; or start anew with another checkpoint, "
                "which reads the streams from their beginning."
            )
        if known.static != self.static:
            changed.append("what the query finds in static data is not what it was")
            if replace(known, static=self.static) == self:
                hint = (
                    "Start it with --reload-static, start(..., reload_static=True) in Python, to go on "
                    "with the new data; or with the data that it had."
                )
        if known.schema != self.schema:
            changed.append("the schema is not what it was")
        if known.inputs != self.inputs:
            changed.append("a query that feeds it is not what it was")
        raise StateError(
            f"the checkpoint {checkpoint} was made for something else",
            detail="; ".join(changed),
            hint=hint,
        )


def layout_of(plan: QueryPlan) -> str:
    """Say in short how the rows of a query are spread over shards and stages."""
    key = plan.key
    if key.variable is None:
        return "in one piece"
    everywhere = ", ".join(map(str, sorted(key.replicated)))
    found = f"by {key.variable}" + (f", leaves {everywhere} in every shard" if everywhere else "")
    if key.cut is None:
        return found
    then = f"by {key.second}" if key.second is not None else "in one piece"
    return f"{found}, and after operator {key.cut} {then}"
