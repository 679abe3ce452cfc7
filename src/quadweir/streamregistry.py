"""The streams that an engine knows: declared, built in a chain of calls, provided or mapped."""

from __future__ import annotations

from collections.abc import Mapping as ByIri
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, final

from quadweir.errors import DeclarationError, QuadweirError
from quadweir.sources.declare import FromColumn, StreamDeclaration
from quadweir.streambuilder import StreamBuilder, StreamMapping

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.mapping.model import Mapping
    from quadweir.runtime.match.feeds import Feed


@final
class StreamRegistry:
    """The streams of one engine, by their IRIs.

    A chain of calls may be unfinished. It is taken over once it is valid, when somebody needs a
    stream; whoever reads that stream learns what is wrong with it.

    Args:
        spark: the session.

    Attributes:
        declared: the declarations that are known to be valid.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.declared: dict[str, StreamDeclaration] = {}
        self._provided: dict[str, Feed] = {}
        self._building: dict[str, StreamBuilder] = {}
        self._settled: dict[str, StreamDeclaration] = {}

    def declare(self, declaration: StreamDeclaration) -> None:
        """Declare a stream; it replaces one of the same IRI."""
        self._building.pop(declaration.iri, None)
        self._provided.pop(declaration.iri, None)
        self.declared[declaration.iri] = declaration

    def begin(self, iri: str) -> StreamBuilder:
        """Begin a chain of calls; the stream replaces one of the same IRI."""
        builder = StreamBuilder(iri)
        self.declared.pop(iri, None)
        self._provided.pop(iri, None)
        self._settled.pop(iri, None)
        self._building[iri] = builder
        return builder

    def provide(self, iri: str, feed: Feed) -> None:
        """Take the rows of a stream as they are."""
        self._building.pop(iri, None)
        self._provided[iri] = feed

    def take_mapped(self, feeds: ByIri[str, Feed]) -> None:
        """Take the elements that a mapping makes, some of them from the records of declared streams."""
        self._provided.update(feeds)

    def feeds(self) -> dict[str, Feed]:
        """Return all streams as queries read them."""
        from quadweir.runtime.match.declared import declared_feed

        self.settle()
        declared = {iri: declared_feed(self._spark, one) for iri, one in self.declared.items()}
        return declared | self._provided

    def check(self, iri: object) -> None:
        """Raise what is wrong with a stream that is declared in a chain of calls."""
        building = self._building.get(str(getattr(iri, "value", iri)))
        if building is not None:
            self._take_over(building)

    def settle(self) -> None:
        """Take over the streams that chains of calls have declared, as far as they are valid."""
        for building in self._building.values():
            with suppress(QuadweirError):
                self._take_over(building)

    def _take_over(self, building: StreamBuilder) -> None:
        iri, declared = building.iri, building.declaration
        if self._settled.get(iri) is declared:
            return
        feed = _built_feed(self._spark, building, {**self.declared, iri: declared})
        self.declared[iri] = self._settled[iri] = declared
        self._provided.pop(iri, None)
        if feed is not None:
            self._provided[iri] = feed


def _built_feed(
    spark: SparkSession, built: StreamBuilder, declarations: ByIri[str, StreamDeclaration]
) -> Feed | None:
    """Return a stream that is a DataFrame or mapped as a feed; None if its declaration says it all.

    Raises:
        DeclarationError: it is not clear which source of its mapping it takes the place of.
        MappingError: its mapping is not valid.
        UsageError: its DataFrame does not have the columns of a statement.
    """
    from quadweir.runtime.match.mapped import mapped
    from quadweir.runtime.match.provided import provided_feed

    declared, frame, by = built.declaration, built.records, built.mapped_by
    if by is not None:
        name, mapping = _source_of(by, declared.iri)
        frames = {name: frame} if frame is not None else None
        if frames is None:
            mapping = _reading_stream(mapping, name, declared.iri)
        time = declared.time.column if isinstance(declared.time, FromColumn) else None
        return mapped(
            spark,
            mapping,
            frames,
            declarations,
            stream=declared.iri,
            time=None if frames is None or time is None else {name: time},
            base=by.base,
            delay=declared.delay,
            idle=declared.idle,
            ahead=declared.ahead,
            allow_dirs=by.allow_dirs,
            allow_hosts=by.allow_hosts,
        ).feeds()[declared.iri]
    if frame is None:
        return None
    return provided_feed(
        declared.iri,
        frame,
        delay=declared.delay,
        idle=declared.idle,
        ahead=declared.ahead,
        canonical=False,
    )


def _source_of(by: StreamMapping, iri: str) -> tuple[str, Mapping]:
    """Return the name of the source that a stream takes the place of, and the mapping.

    Raises:
        DeclarationError: it is not clear which source that is.
    """
    from quadweir.mapping.records import describe

    names = {describe(each.source): None for each in by.mapping.triples_maps}
    wanted = by.source
    if wanted is None:
        wanted = iri if iri in names else next(iter(names)) if len(names) == 1 else None
    if wanted is None or wanted not in names:
        raise DeclarationError(
            f"the mapping of <{iri}> has several sources"
            if wanted is None
            else f"the mapping of <{iri}> has no source {wanted!r}",
            hint=f"Name the one to read from the stream, source=...: {', '.join(names)}.",
        )
    return wanted, by.mapping


def _reading_stream(mapping: Mapping, name: str, iri: str) -> Mapping:
    """Return a mapping that reads a declared stream instead of a source."""
    from quadweir.mapping.records import describe
    from quadweir.mapping.sources import DeclaredStream

    maps = [
        replace(each, source=replace(each.source, source=DeclaredStream(iri=iri)))
        if describe(each.source) == name
        else each
        for each in mapping.triples_maps
    ]
    return replace(mapping, triples_maps=tuple(maps))
