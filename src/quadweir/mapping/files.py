"""Files that a mapping names: which ones it may use, and how their bytes become text.

A mapping is untrusted. Its paths, with links resolved, start at its own folder (or the working
folder, if it says so). A path outside of that folder and of the folders that the run allows is
refused.
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
from quadweir.fileformats import Compression
from quadweir.mapping.sources import PathRoot

if TYPE_CHECKING:
    from quadweir.spans import Span

BROKEN: Final = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    UnicodeError,
)
"""The errors of reading a file that is damaged, encrypted or not in its encoding."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The start of a mapping's relative paths, and the folders that it may use."""

    mapping: Path
    working: Path = field(default_factory=Path.cwd)
    allowed: tuple[Path, ...] = ()

    @property
    def homes(self) -> tuple[Path, ...]:
        """The folders that a mapping may always read."""
        return (self.mapping, *self.allowed)

    def resolve(self, path: str, root: PathRoot | str, *, span: Span | None = None) -> Path:
        """The real path of the file that a mapping names.

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
        real = _real(start / path, path, span)
        homes = self.homes
        if root == PathRoot.WORKING_DIRECTORY:
            # The user chose the working folder.
            homes = (*homes, self.working)
        if not any(real.is_relative_to(home.resolve()) for home in homes):
            raise MappingError(
                f"the mapping names the file {path}, which lies outside of its folder",
                detail=f"That is {real}.",
                hint=f"Move the file, or allow its folder with --allow-dir {real.parent}.",
                span=span,
            )
        return real


def _real(path: Path, shown: str, span: Span | None) -> Path:
    try:
        real = path.resolve()
        real.exists()
        return real
    # A NUL character, a name that is too long, links that lead in a circle.
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MappingError(
            f"the mapping names the file {shown[:200]!r}, which is not a path",
            detail=f"The system says: {reason}.",
            span=span,
        ) from error


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
                yield (_member(archive, one) for one in archive.infolist() if not one.is_dir())
        case Compression.TAR_GZ | Compression.TAR_XZ:
            is_gzip = compression is Compression.TAR_GZ
            # Members are read in order and never written to disk.
            with tarfile.open(path, "r:gz") if is_gzip else tarfile.open(path, "r:xz") as tar:
                yield (
                    member
                    for one in tar
                    if one.isfile() and (member := tar.extractfile(one)) is not None
                )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    if member.flag_bits & 1:
        raise zipfile.BadZipFile(f"{member.filename} is encrypted; unpack the archive first")
    try:
        return archive.open(member)
    except NotImplementedError as error:
        raise zipfile.BadZipFile(f"{member.filename}: {error}") from None


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
    r"""Whether a text holds bytes that could not be decoded.

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


def missing(path: Path, shown: str, span: Span | None) -> SourceError:
    """The error for a file that is not there or cannot be opened."""
    kind = "is a folder" if path.is_dir() else "does not exist or cannot be read"
    return SourceError(
        f"the mapping reads {shown}, which {kind}",
        detail=f"Looked for {path}.",
        hint="Check rml:path; it is relative to the mapping's folder unless rml:root says else.",
        span=span,
    )
