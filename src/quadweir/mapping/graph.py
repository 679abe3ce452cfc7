"""A mapping document as an RDF graph whose statements know where they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

import pyoxigraph as ox

from quadweir.errors import LimitError, MappingError, SourceError
from quadweir.mapping.vocabulary import short_name, shown_name
from quadweir.rdfguards import bounded, check_triple_terms
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal, Term
from quadweir.turtleplaces import TriplePlace, locate_triples, match_places

MAX_MAPPING_BYTES: Final = 16 * 1024 * 1024
MAX_STATEMENTS: Final = 1_000_000
FALLBACK_FOLDER: Final = "file:///.mapping/"
FALLBACK_BASE: Final = f"{FALLBACK_FOLDER}document"
"""Relative IRIs in a document without a base name parts of the document, or files in its folder."""

_SYNTAXES: Final = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".rml": ox.RdfFormat.TURTLE,
    ".r2rml": ox.RdfFormat.TURTLE,
    ".n3": ox.RdfFormat.TURTLE,  # Mappings in N3 use only its Turtle part.
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
    ".trig": ox.RdfFormat.TRIG,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".xml": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
    ".json": ox.RdfFormat.JSON_LD,
}

GraphNode: TypeAlias = ox.NamedNode | ox.BlankNode
GraphTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """One property of a node, under the property's short name."""

    name: str
    value: GraphTerm
    property_span: Span | None
    value_span: Span | None
    iri: str = ""
    """The property as it was written."""

    @property
    def shown(self) -> str:
        """The property's short name with the usual prefix of the namespace it was written in."""
        return shown_name(self.name, self.iri)


class MappingGraph:
    """The statements of a mapping by subject, in document order.

    >>> graph = MappingGraph.parse("<urn:a> <http://w3id.org/rml/template> 'x' .")
    >>> [statement.name for statement in graph.about(ox.NamedNode("urn:a"))]
    ['template']
    """

    def __init__(
        self,
        statements: Iterable[tuple[GraphNode, Statement, Span | None]],
        base_iri: str | None = None,
    ) -> None:
        self.base_iri = base_iri
        self._about: dict[GraphNode, list[Statement]] = {}
        self._spans: dict[GraphNode, Span | None] = {}
        self._labels: dict[ox.BlankNode, str] = {}
        for subject, statement, span in statements:
            self._about.setdefault(subject, []).append(statement)
            self._spans.setdefault(subject, span)

    @classmethod
    def read(cls, path: Path) -> MappingGraph:
        """Read a mapping file; its extension determines the RDF syntax."""
        return cls.parse(
            read_text(path),
            syntax=_SYNTAXES.get(path.suffix.lower(), ox.RdfFormat.TURTLE),
            source=str(path),
        )

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        syntax: ox.RdfFormat = ox.RdfFormat.TURTLE,
        source: str | None = None,
    ) -> MappingGraph:
        """Parse a mapping text; a syntax error is a `MappingError` with its place."""
        if syntax == ox.RdfFormat.RDF_XML and "<!DOCTYPE" in text:
            # The parser expands entities without a limit, and aborts the process when memory is
            # full.
            line = text.count("\n", 0, text.index("<!DOCTYPE")) + 1
            raise MappingError(
                "the mapping has a document type declaration",
                detail="Entities can unfold a small file into gigabytes, so they are refused.",
                hint="Write the namespaces in full, and leave out <!DOCTYPE ...>.",
                span=Span(line, 1, source=source),
            )
        try:
            check_triple_terms(text.encode("utf-8", "replace"), syntax)
            parser = ox.parse(text, format=syntax, base_iri=FALLBACK_BASE)
            quads: list[ox.Quad] = []
            for quad in bounded(parser):
                if len(quads) >= MAX_STATEMENTS:
                    raise LimitError(
                        f"the mapping has more than {MAX_STATEMENTS:,} statements",
                        hint="Split it, or check that it is not a data file.",
                    )
                quads.append(quad)
        except SyntaxError as error:
            span = (
                Span(error.lineno, error.offset or 1, error.end_lineno, error.end_offset, source)
                if error.lineno
                else Span(1, 1, source=source)
            )
            raise MappingError(
                f"the mapping is not valid {syntax.name}",
                detail=str(error.msg),
                hint="Correct the syntax at that place; nothing of the mapping was read.",
                span=span,
            ) from None
        base = parser.base_iri if parser.base_iri != FALLBACK_BASE else None
        places: dict[int, TriplePlace] = {}
        if syntax in (ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES):
            scanned = locate_triples(text, base=FALLBACK_BASE, source=source)
            places = match_places(quads, scanned)
        return cls(_statements(quads, places), base)

    def subjects(self) -> Iterator[GraphNode]:
        """Every subject, in the order of first mention."""
        return iter(self._about)

    def about(self, node: GraphTerm) -> list[Statement]:
        """The statements about a node; literals have none."""
        return [] if isinstance(node, ox.Literal) else self._about.get(node, [])

    def values(self, node: GraphTerm, *names: str) -> list[Statement]:
        """A node's statements under any of these short names."""
        return [statement for statement in self.about(node) if statement.name in names]

    def one(self, node: GraphTerm, *names: str) -> Statement | None:
        """A node's only statement under these names; two different ones are an error."""
        found = self.values(node, *names)
        if len({statement.value for statement in found}) > 1:
            shown = " and ".join(dict.fromkeys(s.shown for s in found))
            raise MappingError(
                f"{shown} is given {len(found)} times where one is allowed",
                hint="Keep one of them.",
                span=found[1].property_span,
            )
        return found[0] if found else None

    def types(self, node: GraphTerm) -> set[str]:
        """The short names of a node's classes."""
        return {
            short_name(statement.value.value)
            for statement in self.values(node, "a")
            if isinstance(statement.value, ox.NamedNode)
        }

    def span(self, node: GraphTerm) -> Span | None:
        """The place where a node is first the subject of a statement."""
        return None if isinstance(node, ox.Literal) else self._spans.get(node)

    def name(self, node: GraphTerm) -> str:
        """The name of a node for messages and references; blank nodes are numbered in order."""
        if isinstance(node, ox.BlankNode):
            return self._labels.setdefault(node, f"_:b{len(self._labels) + 1}")
        return node.value.removeprefix(FALLBACK_BASE).removeprefix(FALLBACK_FOLDER)


def read_text(path: Path) -> str:
    """Read a mapping file of reasonable size as UTF-8."""
    try:
        size = path.stat().st_size
        if size > MAX_MAPPING_BYTES:
            raise LimitError(
                f"the mapping {path} has {size:,} bytes, more than {MAX_MAPPING_BYTES:,}",
                hint="Split it, or check that it is not a data file.",
            )
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MappingError(
            f"the mapping {path} is not UTF-8",
            detail=f"The byte at {error.start} does not belong there.",
            hint="Save the file as UTF-8.",
            span=Span(1, 1, source=str(path)),
        ) from None
    except OSError as error:
        raise SourceError(
            f"cannot read the mapping {path}: {error.strerror or error}", hint="Check the path."
        ) from None


def to_term(value: GraphTerm) -> Term:
    """Turn a parsed term into ours."""
    match value:
        case ox.NamedNode():
            return IRI(value.value)
        case ox.BlankNode():
            return BlankNode(value.value)
        case ox.Literal():
            if value.language:
                return Literal(value.value, language=value.language)
            return Literal(value.value, IRI(value.datatype.value))


def _statements(
    quads: list[ox.Quad], places: dict[int, TriplePlace]
) -> Iterator[tuple[GraphNode, Statement, Span | None]]:
    for index, quad in enumerate(quads):
        place = places.get(index)
        if not isinstance(quad.subject, (ox.NamedNode, ox.BlankNode)) or not isinstance(
            quad.object, (ox.NamedNode, ox.BlankNode, ox.Literal)
        ):
            continue  # quoted triples say nothing that a mapping needs
        yield (
            quad.subject,
            Statement(
                short_name(quad.predicate.value),
                quad.object,
                place.predicate_span if place else None,
                place.object_span if place else None,
                quad.predicate.value,
            ),
            place.subject_span if place else None,
        )
