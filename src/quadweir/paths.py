"""Paths in the form that Spark needs, and a check that a file is in an allowed folder.

Spark reads a path as a glob: `a[b].csv` would be `ab.csv`, and `{x/y,.}./secret` would be
`../secret`. So every path that Spark reads goes through `spark_path`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from quadweir.errors import SourceError, UsageError

PathLike: TypeAlias = str | os.PathLike[str]
"""A path as callers of the Python API may give it: text, a Path, or a `file:` URI."""
# A Path of a URI has lost a slash: Path("s3a://a") is s3a:/a.
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
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


def is_elsewhere(given: PathLike) -> bool:
    """Whether a caller names a place on another file system than this machine's.

    >>> is_elsewhere("s3a://bucket/answers"), is_elsewhere("answers"), is_elsewhere("file:///answers")
    (True, False, False)
    >>> is_elsewhere(Path("hdfs://node/answers"))
    True
    """
    text = os.fspath(given)
    return _URI.match(text) is not None and not text.startswith("file:")


def is_address(path: Path) -> bool:
    """Whether a path was made of an address, such as `s3a://bucket/a` or `file:///a`.

    >>> is_address(Path("file:///a")), is_address(Path("a/b"))
    (True, False)
    """
    return _URI.match(str(path)) is not None


def as_path(given: PathLike) -> Path:
    """Return the path that a caller gives as text, as a Path or as a `file:` URI.

    >>> as_path("data/a.ttl"), as_path("file:///data/a%20b.ttl")
    (PosixPath('data/a.ttl'), PosixPath('/data/a b.ttl'))

    Raises:
        UsageError: it is on another machine.
    """
    text = os.fspath(given)
    if _URI.match(text) is None:
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{text} is not on this machine",
            hint="Give a path, or a file: URI; mount other file systems.",
        )
    return Path(unquote(parts.path))


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
