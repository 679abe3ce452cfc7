"""Schemas from RDF files: their axioms, and warnings about probable mistakes, with places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.entailment.read import read_axioms
from quadweir.entailment.schema import Schema, SchemaWarning
from quadweir.errors import DataError, LimitError, SourceError
from quadweir.jelly import SUFFIX
from quadweir.sources.lines import open_bytes
from quadweir.sources.rdfdocuments import RDF_SUFFIXES, BlankNames, rdf_suffix
from quadweir.sources.xmlguard import without_doctype
from quadweir.spans import Span
from quadweir.terms import IRI, Quad
from quadweir.turtleplaces import locate_triples, match_places

if TYPE_CHECKING:
    import pyoxigraph

MAX_BYTES: Final = 256 * 1024 * 1024
_PARSED: Final = {suffix: name for suffix, name in RDF_SUFFIXES.items() if suffix != SUFFIX}
_SUFFIXES: Final = {**_PARSED, ".owl": "RDF_XML", ".rdfs": "RDF_XML"}
_UNDECLARED: Final = re.compile(r"The prefix (?P<prefix>[^ ]*): has not been declared")
_NOWHERE: Final = "urn:quadweir:undefined-prefix:"
_BASE: Final = "file:///.schema/document"


def read_schema(paths: Iterable[Path | str]) -> tuple[Schema, list[SchemaWarning]]:
    """Return the schema of several files, and warnings.

    Raises:
        SourceError: a file does not exist.
        DataError: a file is not RDF, or not in the format of its name.
        UnsupportedError: the schema has an axiom about `rdf:type` that is not supported.
    """
    documents = [_Document(path, number) for number, path in enumerate(map(Path, paths))]
    schema, odd = read_axioms((quad, None) for each in documents for quad in each.quads)
    if odd or schema.transitive:
        # Places are needed only now, and finding them takes time.
        schema, odd = read_axioms(pair for each in documents for pair in each.placed())
    return schema, [*(each for one in documents for each in one.warnings), *odd]


class _Document:
    """One file: its triples, their places if needed, and the warnings of the parser."""

    def __init__(self, path: Path, number: int) -> None:
        self._path = path
        self._names = BlankNames(Path(f"{number}-{path.name}"))
        self.warnings: list[SchemaWarning] = []
        suffix = rdf_suffix(path)
        if suffix not in _SUFFIXES:
            raise DataError(
                f"{path}: no RDF format has the suffix {suffix or '(none)'}",
                hint=f"Names of schema files end in {', '.join(_SUFFIXES)}.",
            )
        self._suffix = suffix
        self._content = self._text(suffix)
        self._parsed = self._parse(self._content, _SUFFIXES[suffix])
        self._kept = [at for at, quad in enumerate(self._parsed) if not self._is_nowhere(quad)]
        self.quads = [self._names.quad(self._parsed[at]) for at in self._kept]

    def placed(self) -> Iterator[tuple[Quad, Span | None]]:
        """Yield the triples with the places of their objects; None in formats without places."""
        places = {}
        if self._suffix in (".ttl", ".nt"):
            found = locate_triples(self._content, base=_BASE, source=str(self._path))
            places = match_places(self._parsed, found)
        for at, quad in zip(self._kept, self.quads, strict=True):
            yield quad, places[at].object_span if at in places else None

    def _text(self, suffix: str) -> str:
        try:
            with open_bytes(self._path) as file:
                data = without_doctype(file) if _SUFFIXES[suffix] == "RDF_XML" else file
                read = data.read(MAX_BYTES + 1)
        except OSError as error:
            raise SourceError(f"cannot read {self._path}: {error.strerror or error}") from error
        if len(read) > MAX_BYTES:
            raise LimitError(
                f"the schema {self._path} has more than {MAX_BYTES:,} bytes",
                hint="Check that it is not a file of data.",
            )
        try:
            return read.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(
                f"the schema {self._path} is not UTF-8",
                detail=f"The byte at {error.start} does not belong there.",
                hint="Save the file as UTF-8.",
            ) from None

    def _parse(self, text: str, name: str) -> list[pyoxigraph.Quad]:
        """Parse a document; names with an undefined prefix get a warning and are left out later."""
        import pyoxigraph as ox

        undefined: dict[str, str] = {}
        while True:
            try:
                return list(
                    ox.parse(
                        "".join(undefined.values()) + text,
                        format=getattr(ox.RdfFormat, name),
                        base_iri=_BASE,
                    )
                )
            except SyntaxError as error:
                found = _UNDECLARED.search(error.msg)
                span = self._span(error, len("".join(undefined.values())))
                if found is None or found["prefix"] in undefined:
                    raise DataError(
                        f"the schema is not {name.replace('_', '-')}",
                        detail=error.msg,
                        hint="Correct the syntax at that place.",
                        span=span,
                    ) from None
                prefix = found["prefix"]
                # On the first line, so that all other lines keep their numbers.
                undefined[prefix] = f"@prefix {prefix}: <{_NOWHERE}{prefix}:> . "
                self.warnings.append(
                    SchemaWarning(
                        f"the prefix {prefix}: is not defined: what is said with it is left out",
                        span,
                    )
                )
            except ValueError as error:
                raise DataError(f"the schema {self._path} cannot be read: {error}") from None

    def _span(self, error: SyntaxError, added: int) -> Span:
        source = str(self._path)
        if not error.lineno:
            return Span(1, 1, source=source)
        column = (error.offset or 1) - (added if error.lineno == 1 else 0)
        return Span(error.lineno, column, source=source)

    def _is_nowhere(self, quad: pyoxigraph.Quad) -> bool:
        terms = (self._names.term(each) for each in (quad.subject, quad.predicate, quad.object))
        return any(isinstance(each, IRI) and each.value.startswith(_NOWHERE) for each in terms)
