"""Paths of files as they are handed to Spark, and whether a file lies where it may.

Spark reads a path as a glob: `a[b].csv` would be `ab.csv`, and `{x/y,.}./secret` would be
`../secret`. So every path that Spark reads goes through `spark_path`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quadweir.errors import SourceError

_GLOB: Final = frozenset("{}[]*?\\")


def spark_path(path: Path) -> str | None:
    r"""Spell a path for Spark so that it means this file only; None where Spark cannot read it.

    >>> spark_path(Path("/data/a[b].csv"))
    '/data/a\\[b\\].csv'

    Hadoop takes what precedes a colon for the scheme of a URL, so it opens no file with a colon in
    its name.
    """
    if ":" in str(path):
        return None
    return "".join(f"\\{one}" if one in _GLOB else one for one in str(path))


def check_inside(file: Path, roots: Iterable[Path]) -> None:
    """Check that a file lies below one of `roots`, whatever links lead to it.

    Raises:
        SourceError: it does not, or its links lead in a circle.
    """
    try:
        real = file.resolve(strict=True)
        if any(real.is_relative_to(root.resolve()) for root in roots):
            return
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "its links lead in a circle"
        raise SourceError(f"cannot read {file.name}: {reason}") from error
    raise SourceError(
        f"{file.name} is a link that leads out of the folders that may be read",
        detail=f"It leads to {real}.",
        hint="Move or copy the file into the folder, or name the folder that it leads to.",
    )
