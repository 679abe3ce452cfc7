"""The plan of a query, in its checkpoint: how its shards were made, for use outside of a run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import QuadweirError, StateError
from quadweir.plan.query import QueryPlan
from quadweir.private import replaced
from quadweir.runtime.portable.plandata import as_data, from_data

NAME: Final = "plan.json"
_FORMAT: Final = 1
_MOST_BYTES: Final = 1 << 28


@final
@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What a checkpoint says about the plan of its query.

    Attributes:
        plan: the plan, without what only matching uses.
        wide: if it was planned for a single shard, the plan for several.
    """

    plan: QueryPlan
    wide: QueryPlan | None = None

    def for_shards(self, most: int) -> QueryPlan:
        """Return the plan that so many shards would have."""
        return self.wide if self.wide is not None and most > 1 else self.plan

    def write(self, checkpoint: Path) -> None:
        """Write it to a checkpoint, unless the same is there."""
        table = {
            "format": _FORMAT,
            "plan": as_data(self.plan.for_shards()),
            "wide": None if self.wide is None else as_data(self.wide.for_shards()),
        }
        text = json.dumps({**table, "digest": _digest(table)}, separators=(",", ":"))
        file = checkpoint / NAME
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            return
        with replaced(file) as scratch:
            scratch.write_text(text, encoding="utf-8")

    @staticmethod
    def left_in(checkpoint: Path) -> StoredPlan | None:
        """Return what a checkpoint says; None if it says nothing.

        Raises:
            StateError: the file cannot be read.
        """
        file = checkpoint / NAME
        if not file.is_file():
            return None
        try:
            if file.stat().st_size > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
            table = json.loads(file.read_text(encoding="utf-8"))
            digest = table.pop("digest")
            if table["format"] != _FORMAT:
                raise ValueError(
                    f"it has format {table['format']}, and this release reads {_FORMAT}"
                )
            if digest != _digest(table):
                raise ValueError("its digest does not fit: it was changed")
            wide = table["wide"]
            return StoredPlan(_plan(table["plan"]), None if wide is None else _plan(wide))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, QuadweirError) as error:
            raise StateError(
                f"{file} cannot be read",
                detail=str(error),
                hint="Start the query with this checkpoint and stop it; that writes the file again.",
            ) from error


def _plan(entries: Any) -> QueryPlan:
    plan = from_data(entries)
    if not isinstance(plan, QueryPlan):
        raise ValueError("it is no plan")
    return plan


def _digest(table: Any) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
