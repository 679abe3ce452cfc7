"""Fills the template of a CONSTRUCT with spelled terms; `runtime/answers.py` does it with columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from quadweir.algebra.query import TripleTemplate
from quadweir.terms import MOST_NESTED, BlankNode, Variable

if TYPE_CHECKING:
    from quadweir.algebra.query import ConstructForm, TemplateTerm

SpelledQuad: TypeAlias = tuple[str, str, str, str | None]
"""The spellings of a quad."""
_TOO_DEEP: Final = re.compile(f"(?:<<\\( [^ ]* [^ ]* ){{{MOST_NESTED}}}")


def filled_template(
    form: ConstructForm, value_of: Callable[[Variable], str | None], solution: str
) -> Iterator[SpelledQuad]:
    """Yield the quads that a template makes of a solution; what is no triple is left out.

    Args:
        form: the template.
        value_of: the spelling of a variable; None if it is not bound.
        solution: names the solution. Each solution has blank nodes of its own (S3).
    """

    def value(term: TemplateTerm | None) -> str | None:
        match term:
            case None:
                return None
            case Variable():
                return value_of(term)
            case BlankNode():
                return f"_:c{solution}-{term.label}"
            case TripleTemplate():
                return _triple_term(value(term.subject), value(term.predicate), value(term.object))
            case _:
                return str(term)

    for triple in form.template:
        subject, predicate, end, graph = (value(term) for term in triple.terms)
        if not _begins_triple(subject, predicate) or end is None:
            continue
        if triple.graph is not None and not _is_resource(graph):
            continue
        assert subject is not None
        assert predicate is not None
        yield subject, predicate, end, graph


def statement_line(quad: SpelledQuad) -> str:
    """Return a quad as a line.

    >>> statement_line(("<urn:a>", "<urn:p>", '"1"', None))
    '<urn:a> <urn:p> "1" .'
    """
    return " ".join(part for part in (*quad, ".") if part is not None)


def _triple_term(subject: str | None, predicate: str | None, end: str | None) -> str | None:
    if not _begins_triple(subject, predicate) or end is None or _TOO_DEEP.match(end):
        return None
    return f"<<( {subject} {predicate} {end} )>>"


def _begins_triple(subject: str | None, predicate: str | None) -> bool:
    return _is_resource(subject) and _is_iri(predicate)


def _is_iri(term: str | None) -> bool:
    return term is not None and term.startswith("<") and not term.startswith("<<")


def _is_resource(term: str | None) -> bool:
    return _is_iri(term) or (term is not None and term.startswith("_:"))
