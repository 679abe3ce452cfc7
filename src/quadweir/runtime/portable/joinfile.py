"""The stream joins of a mapping, in its checkpoint: how their shards were made, for use outside of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import QuadweirError, StateError
from quadweir.private import make_folder, replaced
from quadweir.runtime.joins.hosted import JoinSpec
from quadweir.runtime.portable.plandata import as_data, from_data

NAME: Final = "joins.json"
_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True)
class StoredJoins:
    """What a checkpoint says about the stream joins of a mapping.

    Attributes:
        specs: what the shards of each join are made from; `shards` has as many keys as there are shards.
        keyed: for each join whether its records can be divided.
        shards_in: where the shards are, `driver` or `executors`.
    """

    specs: tuple[JoinSpec, ...]
    keyed: tuple[bool, ...]
    shards_in: str

    def with_shards(self, most: int) -> StoredJoins:
        """Return the same joins with another number of shards."""
        return replace(
            self,
            specs=tuple(
                replace(spec, shards=tuple(range(most if keyed else 1)))
                for spec, keyed in zip(self.specs, self.keyed, strict=True)
            ),
        )

    @property
    def most(self) -> int:
        """How many shards were asked for; 1 if no join can have more."""
        return max(len(spec.shards) for spec in self.specs)

    def write(self, checkpoint: Path) -> None:
        """Write it to a checkpoint.

        A window policy of the user's own is code, which is never stored: then nothing is written, and the
        checkpoint cannot be divided.
        """
        try:
            entries = as_data(self.specs)
            from_data(entries)
        except (TypeError, ValueError):
            return
        table = {
            "format": _FORMAT,
            "specs": entries,
            "keyed": list(self.keyed),
            "shards_in": self.shards_in,
        }
        text = json.dumps({**table, "digest": _digest(table)}, separators=(",", ":"))
        make_folder(checkpoint)
        with replaced(checkpoint / NAME) as scratch:
            scratch.write_text(text, encoding="utf-8")

    @staticmethod
    def left_in(checkpoint: Path) -> StoredJoins | None:
        """Return what a checkpoint says; None if it says nothing.

        Raises:
            StateError: the file cannot be read.
        """
        file = checkpoint / NAME
        if not file.is_file():
            return None
        try:
            table = json.loads(file.read_text(encoding="utf-8"))
            digest = table.pop("digest")
            if table["format"] != _FORMAT or digest != _digest(table):
                raise ValueError("its digest does not fit, or it is of another release")
            specs, keyed = from_data(table["specs"]), tuple(table["keyed"])
            if not isinstance(specs, tuple) or len(specs) != len(keyed) or not specs:
                raise ValueError("it has no joins")
            if not all(isinstance(each, JoinSpec) for each in specs):
                raise ValueError("it has something else than joins")
            return StoredJoins(specs, keyed, str(table["shards_in"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, QuadweirError) as error:
            raise StateError(
                f"{file} cannot be read",
                detail=str(error),
                hint="Start the mapping with this checkpoint and stop it; that writes the file again.",
            ) from error


def stored_joins(specs: Sequence[JoinSpec], keyed: Sequence[bool], shards_in: str) -> StoredJoins:
    """Return what a checkpoint is to say about joins; shuffle keys do not matter, only their number."""
    plain = tuple(replace(each, shards=tuple(range(len(each.shards)))) for each in specs)
    return StoredJoins(plain, tuple(keyed), shards_in)


def _digest(table: Any) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
