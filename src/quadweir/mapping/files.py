"""Files that a mapping names: which may be touched, and how their bytes become text.

A mapping is untrusted. What it names is resolved against its own folder (or the working folder, if
it says so), links included, and refused outside of it and of the folders that the run allows.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast, final

from quadweir.errors import MappingError, SourceError
from quadweir.mapping.sources import Compression, PathRoot

if TYPE_CHECKING:
    from quadweir.spans import Span

READ_BYTES: Final = 2**20
BROKEN: Final = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)
"""What reading a damaged file can raise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a mapping's paths start, and the folders that they may reach."""

    mapping: Path
    working: Path = field(default_factory=Path.cwd)
    allowed: tuple[Path, ...] = ()

    def resolve(self, path: str, root: PathRoot | str, *, span: Span | None = None) -> Path:
        """Give the real path of what a mapping calls `path`.

        Raises:
            MappingError: it lies outside of the mapping's folder and of those allowed.
        """
        match root:
            case PathRoot.MAPPING_DIRECTORY:
                start = self.mapping
            case PathRoot.WORKING_DIRECTORY:
                start = self.working
            case _:
                start = self.mapping / root
        real = (start / path).resolve()
        homes = (self.mapping, *self.allowed)
        if root == PathRoot.WORKING_DIRECTORY:
            # Whoever runs a mapping chose the folder to run it in.
            homes = (*homes, self.working)
        if not any(real.is_relative_to(home.resolve()) for home in homes):
            raise MappingError(
                f"the mapping names the file {path}, which lies outside of its folder",
                detail=f"That is {real}.",
                hint=f"Move the file, or allow its folder with --allow-dir {real.parent}.",
                span=span,
            )
        return real


@contextmanager
def open_members(path: Path, compression: Compression) -> Iterator[Iterator[IO[bytes]]]:
    """Open a file and give the byte streams in it: one, or one for each file of an archive."""
    match compression:
        case Compression.NONE:
            with path.open("rb") as plain:
                yield iter((plain,))
        case Compression.GZIP:
            with gzip.open(path) as packed:
                yield iter((cast("IO[bytes]", packed),))
        case Compression.ZIP:
            with zipfile.ZipFile(path) as archive:
                yield (archive.open(one) for one in archive.infolist() if not one.is_dir())
        case Compression.TAR_GZ | Compression.TAR_XZ:
            is_gzip = compression is Compression.TAR_GZ
            # Members are read in order and never written to disk.
            with tarfile.open(path, "r:gz") if is_gzip else tarfile.open(path, "r:xz") as tar:
                yield (
                    member
                    for one in tar
                    if one.isfile() and (member := tar.extractfile(one)) is not None
                )


@contextmanager
def open_text(stream: IO[bytes], encoding: str) -> Iterator[io.TextIOWrapper]:
    """Decode bytes; those that are not in the encoding become surrogates, see `is_broken`.

    A byte order mark is dropped.
    """
    name = encoding.lower().replace("_", "-")
    codec = "utf-8-sig" if name in ("utf-8", "utf8") else encoding
    text = io.TextIOWrapper(stream, codec, errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        # Whoever opened the stream closes it.
        text.detach()


def is_broken(text: str) -> bool:
    r"""Tell whether a text holds bytes that could not be decoded.

    >>> is_broken(b"a\xff".decode("utf-8", "surrogateescape"))
    True
    """
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def mend(text: str) -> str:
    """Replace what could not be decoded by U+FFFD, for showing."""
    return text.encode("utf-8", "replace").decode("utf-8") if is_broken(text) else text


def missing(path: Path, shown: str, span: Span | None) -> SourceError:
    """The error for a file that is not there or cannot be opened."""
    kind = "is a folder" if path.is_dir() else "does not exist or cannot be read"
    return SourceError(
        f"the mapping reads {shown}, which {kind}",
        detail=f"Looked for {path}.",
        hint="Check rml:path; it is relative to the mapping's folder unless rml:root says else.",
        span=span,
    )
