"""`quadweir query --mapping`: streams that a mapping makes in the same run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.engine import Engine
    from quadweir.mapping.model import Mapping as RmlMapping
    from quadweir.sources.declare import StreamDeclaration

MappingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mapping",
        metavar="[IRI=]FILE",
        help="An RML or YARRRML mapping, and the stream of its elements; repeatable.",
    ),
]
AllowDirOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FOLDER", help="Let mappings read files in this folder; repeatable."),
]
AllowNetOption = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST", help="Let mappings connect to this host; repeatable."),
]


@final
@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping of the command line.

    Attributes:
        mapping: the mapping.
        stream: the stream of its elements; None if each of its sources is its own stream.
        iris: the streams that it makes.
    """

    mapping: RmlMapping
    stream: str | None
    iris: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mappings:
    """All options of the command line about mappings."""

    mapped: tuple[Mapped, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    allow_dirs: tuple[Path, ...] = ()
    allow_hosts: tuple[str, ...] = ()

    @property
    def iris(self) -> frozenset[str]:
        """The streams that mappings make."""
        return frozenset(iri for each in self.mapped for iri in each.iris)

    def check(self, declared: Mapping[str, StreamDeclaration]) -> None:
        """Check, before Spark starts, that the inputs of the mappings exist and may be read.

        Raises:
            MappingError: a mapping reads a forbidden file or host, or a stream that is not
            declared.
            SourceError: a file is not there, or a broker does not answer.
        """
        from quadweir.mapping.files import Folders
        from quadweir.runtime.mappings.checks import check_sources

        for each in self.mapped:
            assert each.mapping.path is not None, "it was read from a file"
            folder = each.mapping.path.resolve().parent
            folders = Folders(mapping=folder, allowed=self.allow_dirs)
            check_sources(each.mapping, folders, declared, self.allow_hosts)

    def provide(
        self,
        engine: Engine,
        *,
        bounded: bool,
        delay: timedelta | None = None,
        idle: timedelta | None = None,
        ahead: timedelta | None = None,
    ) -> None:
        """Add the streams to an engine, after the declared ones."""
        for each in self.mapped:
            engine.map(
                each.mapping,
                stream=each.stream,
                time=dict(self.times),
                base=self.base,
                bounded=bounded,
                delay=delay,
                idle=idle,
                ahead=ahead,
                allow_dirs=self.allow_dirs,
                allow_hosts=self.allow_hosts,
            )


def read_mappings(
    given: Sequence[str],
    query: ContinuousQuery,
    taken: Iterable[str],
    declared: Mapping[str, StreamDeclaration],
    base: str | None,
) -> tuple[Mapped, ...]:
    """The mappings of the `--mapping` options, and the streams that they make.

    A mapping without a stream name makes the streams of its sources, if the query reads them all.
    Otherwise it makes the one stream that the query reads and no other option gives.

    Args:
        given: the options.
        query: the query.
        taken: the streams that `--stream` gives.
        declared: the streams that `--streams` declares.
        base: the base of relative names.

    Raises:
        UsageError: a file is not there, nothing says which stream it makes, or a stream is given twice.
        MappingError: a file is no mapping.
    """
    from quadweir.sources.staticfiles import cut_assignment
    from quadweir.syntax.iris import resolve
    from quadweir.terms import IRI

    wanted = {each.stream.value for each in query.windows if isinstance(each.stream, IRI)}
    read: list[tuple[str | None, str, RmlMapping]] = []
    for each in given:
        iri, path = cut_assignment(each, relative=True)
        if not Path(path).is_file():
            raise UsageError(
                f"there is no mapping file {path}", hint="Write --mapping IRI=FILE, or only FILE."
            )
        mapping = read_mapping(Path(path))
        read.append((resolve(iri, base) if iri is not None and base else iri, path, mapping))
    rdf = {iri for iri, one in declared.items() if one.format.is_rdf}
    known = {*taken, *rdf, *(iri for iri, _, _ in read if iri is not None)}
    found = []
    for iri, path, mapping in read:
        own = own_streams(mapping)
        if iri is None and not (own and set(own) <= wanted):
            left = sorted(wanted - known)
            if len(left) != 1:
                shown = ", ".join(f"<{one}>" for one in left or sorted(wanted)) or "any stream"
                raise UsageError(
                    f"which stream does {path} make? The query reads {shown}",
                    hint=f"Write --mapping IRI={path}.",
                )
            iri = left[0]
        found.append(Mapped(mapping, iri, (iri,) if iri is not None else own))
    given_once = {*taken, *rdf}
    for number, mapped in enumerate(found):
        for iri in mapped.iris:
            if iri in given_once:
                raise UsageError(
                    f"<{iri}> is made by {read[number][1]} and given by another option too",
                    hint="Name another stream: --mapping IRI=FILE. A query can read several.",
                )
            given_once.add(iri)
    return tuple(found)


def read_mapping(path: Path) -> RmlMapping:
    """Read and check a mapping.

    Raises:
        MappingError: the file is no mapping, or the mapping cannot run.
    """
    from quadweir.mapping.check import check_mapping
    from quadweir.mapping.model import Mapping as RmlMapping

    mapping = RmlMapping.read(path)
    check_mapping(mapping)
    return mapping


def own_streams(mapping: RmlMapping) -> tuple[str, ...]:
    """The IRIs of a mapping's sources, if triples are made of declared streams only."""
    from quadweir.mapping.sources import DeclaredStream

    found: dict[str, None] = {}
    for each in mapping.triples_maps:
        if each.subject.classes or each.predicate_objects:
            if not isinstance(each.source.source, DeclaredStream):
                return ()
            found[each.source.source.iri] = None
    return tuple(found)
