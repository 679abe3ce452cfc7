"""Static data: RDF files that are read once, before a query starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from quadweir.errors import DataError, SourceError, UsageError
from quadweir.paths import PathLike, as_path
from quadweir.sources.rdfdocuments import RDF_SUFFIXES, BadQuad, rdf_suffix, read_quads
from quadweir.terms import IRI, Quad


@final
@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file or folder of static data; with `graph`, its triples go into this graph."""

    path: Path
    graph: IRI | None = None

    @staticmethod
    def of(text: PathLike) -> StaticFile:
        """Return the static file of `FILE` or `IRI=FILE`.

        >>> StaticFile.of("urn:g=a.ttl")
        StaticFile(path=PosixPath('a.ttl'), graph=IRI(value='urn:g'))
        """
        if not isinstance(text, str):
            return StaticFile(as_path(text))
        iri, path = cut_assignment(text)
        if not path:
            raise UsageError(f"{text} names no file", hint="Write IRI=FILE, or FILE.")
        return StaticFile(as_path(path), IRI(iri) if iri is not None else None)


def cut_assignment(argument: str, *, relative: bool = False) -> tuple[str | None, str]:
    """Return the IRI and the path of `IRI=PATH`; the IRI is None if there is only a path.

    Both may contain equals signs, so a cut before a path that exists is preferred. Unless it may be
    `relative`, an IRI has a colon, because a file may have the name a=b.ttl.

    >>> cut_assignment("urn:s=a.stream"), cut_assignment("a.ttl")
    (('urn:s', 'a.stream'), (None, 'a.ttl'))
    """
    if Path(argument).exists():
        return None, argument
    cuts = [place for place, letter in enumerate(argument) if letter == "="]
    cuts = [place for place in cuts if relative or ":" in argument[:place]]
    for place in cuts:
        if Path(argument[place + 1 :]).exists():
            return argument[:place], argument[place + 1 :]
    return (argument[: cuts[0]], argument[cuts[0] + 1 :]) if cuts else (None, argument)


def read_static(named: Iterable[StaticFile]) -> Iterator[Quad]:
    """Yield the quads of static files; a blank node belongs to its file.

    Raises:
        SourceError: a file does not exist.
        DataError: a file does not parse; a query over half of its static data would give wrong
            answers.
    """
    number = 0
    for each in named:
        for file in list_static(each.path):
            for quad in read_quads(file):
                if isinstance(quad, BadQuad):
                    raise DataError(f"{file}, {quad.place}: {quad.reason}")
                yield _of_file(quad, number, each.graph)
            number += 1


def list_static(path: Path) -> list[Path]:
    """Return the RDF files of a path: itself, or those in the folder.

    Raises:
        SourceError: the path does not exist, or the folder has no RDF files.
    """
    if not path.exists():
        raise SourceError(f"no such file: {path}", hint="Check the path of the static data.")
    if not path.is_dir():
        return [path]
    found = sorted(
        file
        for file in path.iterdir()
        if file.is_file() and file.name[:1] not in "._" and rdf_suffix(file) in RDF_SUFFIXES
    )
    if not found:
        raise SourceError(
            f"no RDF files in {path}", hint=f"Names of RDF files end in {', '.join(RDF_SUFFIXES)}."
        )
    return found


def _of_file(quad: Quad, number: int, graph: IRI | None) -> Quad:
    return replace(quad, graph=quad.graph if graph is None else graph).relabelled(
        lambda label: f"f{number}-{label}"
    )


def apart_from_streams(quads: Iterable[Quad]) -> Iterator[Quad]:
    """Yield the quads with other labels of blank nodes than streams have (S3)."""
    for quad in quads:
        yield quad.relabelled(lambda label: f"g-{label}")
