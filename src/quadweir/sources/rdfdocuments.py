"""The quads of RDF documents, read without Spark; each run gives the same quads.

pyoxigraph parses Turtle, TriG, RDF/XML and JSON-LD, `quadweir.jelly` Jelly. N-Triples and N-Quads are parsed line by line,
so that one wrong line does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import DataError
from quadweir.jelly import SUFFIX, read_jelly
from quadweir.sources.lines import MAX_LINE_BYTES, Fault, open_bytes, read_lines
from quadweir.sources.statements import is_blank, parse_statement
from quadweir.sources.xmlguard import without_doctype
from quadweir.terms import (
    IRI,
    MOST_NESTED,
    TOO_DEEP,
    BlankNode,
    Literal,
    Quad,
    Term,
    TripleTerm,
    nesting,
)

if TYPE_CHECKING:
    import pyoxigraph

RDF_SUFFIXES: Final = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".jsonld": "JSON_LD",
    SUFFIX: "JELLY",
}


@final
@dataclass(frozen=True, slots=True)
class BadQuad:
    """Something that could not be read: its place, the reason, and its beginning."""

    place: str
    reason: str
    record: str | None = None


def rdf_suffix(path: Path) -> str:
    """Return the suffix that says the format, without `.gz`.

    >>> rdf_suffix(Path("a/b.ttl.gz"))
    '.ttl'
    """
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_quads(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Quad | BadQuad]:
    """Yield the quads of a document, in order; its suffix says the format.

    A syntax error ends the reading, except in N-Triples and N-Quads.

    Raises:
        SourceError: the file cannot be opened.
    """
    suffix = rdf_suffix(path)
    if suffix in (".nt", ".nq"):
        yield from _read_lines(path, suffix, max_line_bytes)
    elif suffix == SUFFIX:
        yield from _read_jelly(path)
    elif suffix not in RDF_SUFFIXES:
        yield BadQuad("file", f"no RDF format has the suffix {suffix or '(none)'}")
    else:
        yield from _read_document(path, RDF_SUFFIXES[suffix])


def _read_lines(path: Path, suffix: str, max_line_bytes: int) -> Iterator[Quad | BadQuad]:
    for line in read_lines(path, max_line_bytes=max_line_bytes):
        place = f"line {line.number}"
        if isinstance(line, Fault):
            yield BadQuad(place, line.reason, line.excerpt)
        elif not is_blank(line.text):
            try:
                quad = parse_statement(line.text)
            except DataError as error:
                yield BadQuad(place, error.message, line.text)
                continue
            if quad.graph is not None and suffix == ".nt":
                yield BadQuad(place, "a graph name in N-Triples", line.text)
            else:
                yield quad


def _read_jelly(path: Path) -> Iterator[Quad | BadQuad]:
    with open_bytes(path) as data:
        try:
            yield from read_jelly(data)
        except DataError as error:
            yield BadQuad("file", f"not Jelly: {error.message}")
        except OSError as error:
            yield BadQuad("file", str(error))


def _read_document(path: Path, name: str) -> Iterator[Quad | BadQuad]:
    import pyoxigraph

    rdf_format = getattr(pyoxigraph.RdfFormat, name)
    names = BlankNames(path)
    with open_bytes(path) as data:
        try:
            guarded = without_doctype(data) if name == "RDF_XML" else data
            for quad in pyoxigraph.parse(input=guarded, format=rdf_format):
                yield names.quad(quad)
        except SyntaxError as error:
            place = f"line {error.lineno}" if error.lineno else "file"
            yield BadQuad(place, f"not {rdf_format.name}: {error.msg}")
        except DataError as error:
            yield BadQuad("file", error.message)
        except (ValueError, OSError) as error:
            yield BadQuad("file", str(error))


class BlankNames:
    """Converts pyoxigraph's quads to ours; anonymous blank nodes get the same label in each run.

    pyoxigraph names `[]` at random, and answers must not depend on when a file is read (P1).
    """

    _RANDOM: Final = re.compile(r"[0-9a-f]{28,32}")

    def __init__(self, file: Path) -> None:
        self._prefix = "".join(c if c.isascii() and c.isalnum() else "-" for c in file.name)
        self._names: dict[str, str] = {}

    def quad(self, quad: pyoxigraph.Quad) -> Quad:
        subject, predicate = self.term(quad.subject), self.term(quad.predicate)
        assert isinstance(subject, IRI | BlankNode)
        assert isinstance(predicate, IRI)
        named = str(quad.graph_name) != "DEFAULT"
        graph = self.term(quad.graph_name) if named else None
        assert graph is None or isinstance(graph, IRI | BlankNode)
        return Quad(subject, predicate, self.term(quad.object), graph)

    def term(self, term: object) -> Term:
        import pyoxigraph

        match term:
            case pyoxigraph.NamedNode():
                return IRI(term.value)
            case pyoxigraph.BlankNode():
                if not self._RANDOM.fullmatch(term.value):
                    return BlankNode(term.value)
                fresh = f"q-{self._prefix}-{len(self._names)}"
                return BlankNode(self._names.setdefault(term.value, fresh))
            case pyoxigraph.Literal():
                if term.direction is not None:
                    raise DataError("a base direction of RDF 1.2, which is not supported")
                if term.language is not None:
                    return Literal(term.value, language=term.language)
                return Literal(term.value, IRI(term.datatype.value))
            case pyoxigraph.Triple():
                end = self.term(term.object)
                if nesting(end) >= MOST_NESTED:
                    raise DataError(TOO_DEEP)
                subject, predicate = self.term(term.subject), self.term(term.predicate)
                assert isinstance(subject, IRI | BlankNode)
                assert isinstance(predicate, IRI)
                return TripleTerm(subject, predicate, end)
            case _:
                raise DataError(f"{term} is no RDF term")
