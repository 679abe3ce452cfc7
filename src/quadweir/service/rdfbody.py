"""RDF of request bodies, read with care: what a small body may become is limited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pyoxigraph as ox

from quadweir.errors import DataError
from quadweir.rdfguards import LINE_FORMATS, bounded, check_triple_terms
from quadweir.spans import Span
from quadweir.terms import MOST_NESTED, TOO_DEEP

MOST_DEPTH: Final = 100
"""How deeply brackets may nest."""
_DOCTYPE: Final = b"<!DOCTYPE"
# How texts with a direction are spelled, also in JSON-LD.
_DIRECTIONS: Final = (b"--ltr", b"--rtl", b"@direction", b"rdf:dirLangString", b"#dirLangString")
# Texts and IRIs are passed over. One that does not end goes to the end of the body, so that the body
# is looked at once.
_OPENING: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*"?|'
    rb"'[^'\\]*+(?:\\.[^'\\]*+)*'?|<<\(?|<[^<>\s]*+>?|[\[{(]|[\])}]",
    re.DOTALL,
)
_OPEN: Final = (b"[", b"{", b"(", b"<<(")
_CLOSE: Final = (b"]", b"}", b")")


def read_rdf(
    body: bytes, form: ox.RdfFormat, *, rename_blank_nodes: bool = True
) -> Iterator[ox.Quad]:
    """Yield the statements of a body.

    Args:
        body: the body.
        form: its format.
        rename_blank_nodes: whether blank nodes get new labels, since one means something in its own
            document only.

    Raises:
        DataError: it is no RDF, or nests too deeply; the error has the place.
        LimitError: it is too large when it is written out.
    """
    check_depth(body)
    if form == ox.RdfFormat.RDF_XML and (_DOCTYPE in body or b"\0" in body):
        # The parser expands entities without a limit. Other encodings would hide them.
        raise DataError(
            "the body has a document type declaration, or is not UTF-8",
            hint="Write the namespaces in full, and leave out <!DOCTYPE ...>.",
        )
    has_triple_terms = check_triple_terms(body, form)
    has_directions = any(each in body for each in _DIRECTIONS)
    try:
        found = ox.parse(body, form, rename_blank_nodes=rename_blank_nodes)
        # In formats of lines every term is written out already.
        for quad in found if form in LINE_FORMATS else bounded(found):
            if has_triple_terms:
                check_nesting(quad)
            if has_directions:
                _check_direction(quad)
            yield quad
    except SyntaxError as error:
        raise misplaced(error) from None
    except (ValueError, OSError) as error:
        raise DataError(f"the body is not RDF: {str(error)[:300]}") from None


def misplaced(error: SyntaxError, line: int | None = None) -> DataError:
    """Return a mistake of a body, with its place."""
    at = line if line is not None else error.lineno
    span = Span(at, max(1, error.offset or 1)) if at else None
    return DataError(f"the body is not RDF: {str(error.msg)[:300]}", span=span)


def check_nesting(quad: ox.Quad) -> None:
    """Refuse triple terms that nest deeper than other parts of Quadweir take them.

    Raises:
        DataError: they do.
    """
    depth, end = 0, quad.object
    while isinstance(end, ox.Triple):
        depth, end = depth + 1, end.object
        if depth > MOST_NESTED:
            raise DataError(TOO_DEEP)


def _check_direction(quad: ox.Quad) -> None:
    """Refuse texts with a direction, which other parts of Quadweir do not take."""
    end = quad.object
    while isinstance(end, ox.Triple):
        end = end.object
    if isinstance(end, ox.Literal) and end.direction is not None:
        raise DataError(f"{str(end)[:100]} has a direction, which Quadweir does not know")


def check_depth(body: bytes) -> None:
    """Refuse a document that nests too deeply.

    >>> check_depth(b'[' * 10)

    Raises:
        DataError: it does.
    """
    if body.count(b"[") + body.count(b"{") + body.count(b"(") <= MOST_DEPTH:
        return
    depth = 0
    for each in _OPENING.finditer(body):
        mark = each.group()
        if mark in _OPEN:
            depth += 1
            if depth > MOST_DEPTH:
                raise DataError(f"the body nests deeper than {MOST_DEPTH} levels")
        elif mark in _CLOSE:
            depth -= 1
