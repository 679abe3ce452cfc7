"""N-Quads lines as files of any RDF syntax, encoding and packing, without Spark."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final, cast

import pyoxigraph as ox

from quadweir.errors import MappingError, SourceError
from quadweir.mapping.sources import Compression

FORMATS: Final = "http://www.w3.org/ns/formats/"


class Syntax(StrEnum):
    """The RDF syntaxes that can be written."""

    NQUADS = "nquads"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"
    TRIG = "trig"
    JSONLD = "jsonld"
    RDFXML = "rdfxml"
    N3 = "n3"
    RDFJSON = "rdfjson"

    @property
    def has_graphs(self) -> bool:
        """Whether graph names can be written."""
        return self in (Syntax.NQUADS, Syntax.TRIG, Syntax.JSONLD)

    @property
    def is_lines(self) -> bool:
        """Whether files can simply be joined."""
        return self in (Syntax.NQUADS, Syntax.NTRIPLES)


_BY_IRI: Final = {
    "N-Quads": Syntax.NQUADS,
    "N-Triples": Syntax.NTRIPLES,
    "Turtle": Syntax.TURTLE,
    "TriG": Syntax.TRIG,
    "JSON-LD": Syntax.JSONLD,
    "RDF_XML": Syntax.RDFXML,
    "RDF_JSON": Syntax.RDFJSON,
    "N3": Syntax.N3,
}
_OXIGRAPH: Final = {
    Syntax.TURTLE: ox.RdfFormat.TURTLE,
    Syntax.TRIG: ox.RdfFormat.TRIG,
    Syntax.JSONLD: ox.RdfFormat.JSON_LD,
    Syntax.RDFXML: ox.RdfFormat.RDF_XML,
    Syntax.N3: ox.RdfFormat.N3,
}


def syntax_of(iri: str) -> Syntax:
    """The syntax that a mapping names by an IRI under `http://www.w3.org/ns/formats/`.

    >>> syntax_of("http://www.w3.org/ns/formats/Turtle")
    <Syntax.TURTLE: 'turtle'>
    """
    try:
        return _BY_IRI[iri.removeprefix(FORMATS)]
    except KeyError:
        raise MappingError(
            f"the serialization {iri} is not known",
            hint=f"Use one of {', '.join(_BY_IRI)} under {FORMATS}.",
        ) from None


def write_file(
    lines: Iterable[bytes],
    path: Path,
    syntax: Syntax,
    *,
    encoding: str = "UTF-8",
    compression: Compression = Compression.NONE,
) -> None:
    """Write N-Quads (chunks of whole lines) to a file, which appears only when it is complete."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _packed(scratch, path.name, compression) as out:
            if syntax.is_lines and encoding.upper().replace("-", "") == "UTF8":
                for chunk in lines:
                    out.write(chunk)
            else:
                _serialize(lines, out, syntax, encoding)
        scratch.replace(path)
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written", detail=str(error), hint="Check the folder and its rights."
        ) from error
    finally:
        scratch.unlink(missing_ok=True)


def write_stream(lines: Iterable[bytes], out: IO[bytes], syntax: Syntax) -> None:
    """Write N-Quads (chunks of whole lines) to an open stream."""
    if syntax.is_lines:
        for chunk in lines:
            out.write(chunk)
    else:
        _serialize(lines, out, syntax, "UTF-8")


def _serialize(lines: Iterable[bytes], out: IO[bytes], syntax: Syntax, encoding: str) -> None:
    utf8 = encoding.upper().replace("-", "") == "UTF8"
    sink: IO[bytes] = out if utf8 else cast("IO[bytes]", _Recoder(out, encoding))
    if syntax.is_lines:
        for chunk in lines:
            sink.write(chunk)
    elif syntax is Syntax.RDFJSON:
        sink.write(_rdf_json(_quads(lines)).encode())
    else:
        quads = _quads(lines)
        if syntax.has_graphs:
            ox.serialize(quads, sink, _OXIGRAPH[syntax])
        else:
            ox.serialize((quad.triple for quad in quads), sink, _OXIGRAPH[syntax])


def _quads(lines: Iterable[bytes]) -> Iterator[ox.Quad]:
    # Lenient: unsafe IRIs may hold what an IRI may not.
    stream = cast("IO[bytes]", _Chunks(lines))
    return iter(ox.parse(stream, ox.RdfFormat.N_QUADS, lenient=True))


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a readable stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = chunk
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            rest = self._held + b"".join(self._chunks)
            self._held = b""
            return rest
        while len(self._held) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._held += chunk
        taken, self._held = self._held[:size], self._held[size:]
        return taken


class _Recoder:
    """Writes UTF-8 bytes in another encoding."""

    def __init__(self, out: IO[bytes], encoding: str) -> None:
        import codecs

        self._out = out
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._encode = codecs.getincrementalencoder(encoding)("backslashreplace")

    def write(self, data: bytes) -> int:
        self._out.write(self._encode.encode(self._decode.decode(bytes(data))))
        return len(data)

    def flush(self) -> None:
        self._out.flush()


@contextmanager
def _packed(path: Path, name: str, compression: Compression) -> Iterator[IO[bytes]]:
    inner = name
    for suffix in (".gz", ".zip", ".tar.gz", ".tar.xz", ".tgz", ".txz", ".tar"):
        inner = inner.removesuffix(suffix)
    match compression:
        case Compression.NONE:
            with path.open("wb") as plain:
                yield plain
        case Compression.GZIP:
            with gzip.open(path, "wb") as packed:
                yield cast("IO[bytes]", packed)
        case Compression.ZIP:
            with (
                zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
                archive.open(inner, "w", force_zip64=True) as member,
            ):
                yield member
        case Compression.TAR_GZ | Compression.TAR_XZ:
            # A tar header needs the size in front, so the member is packed from a plain file.
            plain_path = path.with_name(path.name + ".plain")
            try:
                with plain_path.open("wb") as plain:
                    yield plain
                opener: Any = gzip.open if compression is Compression.TAR_GZ else lzma.open
                with opener(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
                    tar.add(plain_path, inner, filter=_anonymous)
            finally:
                plain_path.unlink(missing_ok=True)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _rdf_json(quads: Iterator[ox.Quad]) -> str:
    """Spec: https://www.w3.org/TR/rdf-json/"""
    document: dict[str, dict[str, list[dict[str, str]]]] = {}
    for quad in quads:
        entry = document.setdefault(_name(quad.subject), {}).setdefault(quad.predicate.value, [])
        value = quad.object
        if isinstance(value, ox.Literal):
            shown = {"type": "literal", "value": value.value}
            if value.language:
                shown["lang"] = value.language
            elif not value.datatype.value.endswith("#string"):
                shown["datatype"] = value.datatype.value
        else:
            kind = "bnode" if isinstance(value, ox.BlankNode) else "uri"
            shown = {"type": kind, "value": _name(value)}
        if shown not in entry:
            entry.append(shown)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _name(term: Any) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else str(term.value)
