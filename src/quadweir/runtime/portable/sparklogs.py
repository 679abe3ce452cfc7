"""Spark's logs in a checkpoint: which batches began, which are committed, and with which settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import StateError

OFFSETS: Final = "offsets"
COMMITS: Final = "commits"
PARTITIONS: Final = "spark.sql.shuffle.partitions"


@final
@dataclass(frozen=True, slots=True)
class SparkLogs:
    """What Spark's logs say.

    Attributes:
        begun: the last batch that began; -1 if none did.
        committed: the last batch that was committed; -1 if none was.
        offsets: how far the sources were read in the last batch that began, as Spark's sources say it.
        began_ms: when that batch began.
    """

    begun: int
    committed: int
    offsets: tuple[Any, ...] = ()
    began_ms: int | None = None

    @staticmethod
    def of(checkpoint: Path) -> SparkLogs:
        """Read the logs of a checkpoint.

        Raises:
            StateError: a file is missing, or damaged.
        """
        begun, committed = (_last(checkpoint / name) for name in (OFFSETS, COMMITS))
        if not begun - 1 <= committed <= begun:
            missing = OFFSETS if committed > begun else COMMITS
            raise StateError(
                f"{checkpoint / missing} lacks files: batch {begun} is the last that began, and batch "
                f"{committed} the last that is committed",
                hint="Restore the checkpoint from a backup.",
            )
        if begun < 0:
            return SparkLogs(begun, committed)
        metadata, offsets = _read(checkpoint / OFFSETS / str(begun))
        return SparkLogs(begun, committed, tuple(offsets), metadata.get("batchTimestampMs"))

    @property
    def next(self) -> int:
        """The batch that Spark takes next, for the first time or again."""
        return self.committed + 1


def set_settings(checkpoint: Path, settings: Mapping[str, str]) -> None:
    """Let a run that goes on with a checkpoint have other settings.

    Spark takes some settings from the last entries of the log of offsets, and not from the session.
    """
    last = _last(checkpoint / OFFSETS)
    for number in (last - 1, last):
        file = checkpoint / OFFSETS / str(number)
        if number < 0 or not file.is_file():
            continue
        head, _, rest = file.read_text(encoding="utf-8").split("\n", 2)
        metadata, _ = _read(file)
        metadata["conf"] = {**metadata.get("conf", {}), **settings}
        file.write_text("\n".join((head, json.dumps(metadata), rest)), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _last(folder: Path) -> int:
    return max(
        (int(each.name) for each in folder.glob("[0-9]*") if each.name.isdecimal()), default=-1
    )


def _read(file: Path) -> tuple[dict[str, Any], list[Any]]:
    try:
        version, metadata, *offsets = file.read_text(encoding="utf-8").split("\n")
        if version != "v1":
            raise ValueError(f"its version is {version!r}")
        found = json.loads(metadata)
        if not isinstance(found, dict):
            raise ValueError("it has no settings")
        return found, [_offset(each) for each in offsets]
    except (OSError, ValueError) as error:
        raise StateError(
            f"{file} cannot be read",
            detail=str(error),
            hint="Restore the checkpoint from a backup.",
        ) from error


def _offset(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
