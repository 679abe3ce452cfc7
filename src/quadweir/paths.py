"""Paths in the form that Spark needs, and a check that a file is in an allowed folder.

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
    r"""The path for Spark that means exactly this file; None if Spark cannot read it.

    >>> spark_path(Path("/data/a[b].csv"))
    '/data/a\\[b\\].csv'

    Hadoop reads the text before a colon as the scheme of a URL, so it cannot open a file with a
    colon in its name.
    """
    if ":" in str(path):
        return None
    return "".join(f"\\{one}" if one in _GLOB else one for one in str(path))


def check_inside(file: Path, roots: Iterable[Path]) -> None:
    """Check that a file, with links resolved, is below one of `roots`.

    Raises:
        SourceError: it is not, or its links form a circle.
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
