"""RDF documents in any syntax, encoding and compression, written quad by quad, without Spark.

The input is quads, or N-Quads lines that Spark wrote. The output is a file that appears only when
it is complete. All RDF documents are written here: those of `convert`, `map`, logical targets and
`write_rdf`.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final, cast

import pyoxigraph as ox

from quadweir.errors import MappingError, SourceError
from quadweir.fileformats import Compression
from quadweir.jelly import write_jelly
from quadweir.private import make_folder, replaced
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, TripleTerm

FORMATS: Final = "http://www.w3.org/ns/formats/"
_PACKINGS: Final = (".gz", ".zip", ".tar.gz", ".tar.xz", ".tgz", ".txz", ".tar")


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
    JELLY = "jelly"

    @property
    def has_graphs(self) -> bool:
        """Whether the syntax has graph names."""
        return self in (Syntax.NQUADS, Syntax.TRIG, Syntax.JSONLD, Syntax.JELLY)

    @property
    def is_lines(self) -> bool:
        """Whether two files can be concatenated."""
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
    Syntax.NQUADS: ox.RdfFormat.N_QUADS,
    Syntax.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Syntax.TURTLE: ox.RdfFormat.TURTLE,
    Syntax.TRIG: ox.RdfFormat.TRIG,
    Syntax.JSONLD: ox.RdfFormat.JSON_LD,
    Syntax.RDFXML: ox.RdfFormat.RDF_XML,
    Syntax.N3: ox.RdfFormat.N3,
}


def syntax_of(iri: str) -> Syntax:
    """Return the syntax of an IRI under `http://www.w3.org/ns/formats/`.

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
    compression: Compression | None = None,
) -> None:
    """Write N-Quads (chunks of whole lines) to a file, which appears only when it is complete.

    Args:
        lines: chunks of N-Quads; without graph names if the syntax has none.
        path: the file.
        syntax: the syntax to write.
        encoding: the encoding; characters that it lacks are written as escapes.
        compression: the compression; None takes it from the end of the name (`.gz`).

    Raises:
        SourceError: the file cannot be written.
    """
    with opened(path, compression) as out:
        write_stream(lines, out, syntax, encoding=encoding)


def write_stream(
    lines: Iterable[bytes], out: IO[bytes], syntax: Syntax, *, encoding: str = "UTF-8"
) -> None:
    """Write N-Quads (chunks of whole lines) to an open stream."""
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    sink = out if is_utf8 else cast("IO[bytes]", _Recoder(out, encoding))
    if syntax.is_lines:
        for chunk in lines:
            sink.write(chunk)
        return
    quads = _quads(lines)
    if not syntax.has_graphs:
        quads = (ox.Quad(one.subject, one.predicate, one.object) for one in quads)
    write_quads(quads, sink, syntax)


def write_quads(
    quads: Iterable[ox.Quad],
    out: IO[bytes],
    syntax: Syntax,
    *,
    prefixes: Mapping[str, str] | None = None,
) -> None:
    """Write quads to an open stream.

    Raises:
        ValueError: the syntax cannot express the quads; the text is pyoxigraph's.
    """
    if syntax is Syntax.RDFJSON:
        out.write(_rdf_json(quads).encode())
    elif syntax is Syntax.JELLY:
        for frame in write_jelly(map(_own_quad, quads)):
            out.write(frame)
    else:
        ox.serialize(quads, out, _OXIGRAPH[syntax], prefixes=dict(prefixes) if prefixes else None)


@contextmanager
def opened(path: Path, compression: Compression | None = None) -> Iterator[IO[bytes]]:
    """Open a compressed file for writing; it appears under its name only when it is complete.

    Raises:
        SourceError: the file cannot be written.
    """
    if compression is None:
        is_gzip = path.name.lower().endswith(".gz")
        compression = Compression.GZIP if is_gzip else Compression.NONE
    try:
        make_folder(path.parent)
        with replaced(path) as scratch, _packed(scratch, path.name, compression) as out:
            yield out
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written", detail=str(error), hint="Check the folder and its rights."
        ) from error


def _quads(lines: Iterable[bytes]) -> Iterator[ox.Quad]:
    # Lenient: unsafe IRIs may contain characters that an IRI must not.
    stream = cast("IO[bytes]", _Chunks(lines))
    return iter(ox.parse(stream, ox.RdfFormat.N_QUADS, lenient=True))


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a readable stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._held:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._held = memoryview(chunk)
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size


class _Recoder:
    """Writes UTF-8 bytes in another encoding."""

    def __init__(self, out: IO[bytes], encoding: str) -> None:
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
    for suffix in _PACKINGS:
        inner = inner.removesuffix(suffix)
    match compression:
        case Compression.NONE:
            with path.open("wb") as plain:
                yield plain
        case Compression.GZIP:
            # No name and no time in the header: the same input gives the same bytes.
            with (
                path.open("wb") as file,
                gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
            ):
                yield cast("IO[bytes]", packed)
        case Compression.ZIP:
            with (
                zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
                archive.open(inner, "w", force_zip64=True) as member,
            ):
                yield member
        case Compression.TAR_GZ | Compression.TAR_XZ:
            # A tar header comes first and has the size, so the member is packed from a plain file.
            with tempfile.NamedTemporaryFile(prefix=".", dir=path.parent) as plain:
                yield cast("IO[bytes]", plain)
                plain.flush()
                opener: Any = gzip.open if compression is Compression.TAR_GZ else lzma.open
                with opener(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
                    tar.add(plain.name, inner, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _rdf_json(quads: Iterable[ox.Quad]) -> str:
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


def _own_quad(quad: ox.Quad) -> Quad:
    graph = quad.graph_name
    return Quad(
        cast("IRI | BlankNode", _own_term(quad.subject)),
        IRI(quad.predicate.value),
        _own_term(quad.object),
        None if isinstance(graph, ox.DefaultGraph) else cast("IRI", _own_term(graph)),
    )


def _own_term(term: Any) -> Term:
    match term:
        case ox.NamedNode():
            return IRI(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            return Literal(term.value, IRI(term.datatype.value), term.language)
        case _:
            subject = cast("IRI | BlankNode", _own_term(term.subject))
            return TripleTerm(subject, IRI(term.predicate.value), _own_term(term.object))


def _name(term: Any) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else str(term.value)
