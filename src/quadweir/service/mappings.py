"""What requests say about mappings: declare them, and try them on sample records."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.errors import LimitError, MappingError, QuadweirError, UsageError
from quadweir.mapping.apply import compile_frames
from quadweir.mapping.check import check_mapping
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import DeclaredStream
from quadweir.mapping.yarrrml import parse_yarrrml
from quadweir.service.problems import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PressureError,
    problem_of,
)
from quadweir.service.queries import check_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.engine import Engine
    from quadweir.mapping.model import Mapping as RmlMapping
    from quadweir.service.declarations import Declarations, Declared
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.settings import AppMapping, ServedApplication, ServiceSettings
    from quadweir.service.streams import StreamDesk

_FIELDS: Final = ("text", "language", "stream", "time", "base")
_MOST_RECORDS: Final = 50
_MOST_RECORD_CHARS: Final = 200_000
_YARRRML: Final = "yarrrml"
_RML: Final = "rml"


@final
class MappingDesk:
    """Answers requests about mappings.

    Args:
        spark: the session.
        app: the application.
        settings: what the operator decides.
        declarations: the log of the service.
        streams: the streams.
    """

    def __init__(
        self,
        spark: SparkSession,
        app: ServedApplication,
        settings: ServiceSettings,
        declarations: Declarations,
        streams: StreamDesk,
    ) -> None:
        self._spark = spark
        self._app = app
        self._settings = settings
        self._declarations = declarations
        self._streams = streams
        self._changing = threading.RLock()
        self._read: dict[str, RmlMapping] = {
            name: parsed(table["text"], table.get("language"))
            for name, table in declarations.now.mappings.items()
        }

    # --- what there is ---

    def made(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return the streams that each mapping reads, and those that it makes."""
        found = {name: (each.sources, each.streams) for name, each in self._app.mappings.items()}
        for name, mapping in self._read.items():
            table = self._declarations.now.mappings[name]
            sources = sources_of(mapping)
            stream = table.get("stream")
            found[name] = (sources, (stream,) if stream is not None else sources)
        return found

    def maker_of(self, iri: str) -> str | None:
        """Return the mapping that makes a stream."""
        return next((name for name, (_, made) in self.made().items() if iri in made), None)

    def readers_of(self, iri: str) -> list[str]:
        """Return the mappings that read a stream of records."""
        return [name for name, (sources, _) in self.made().items() if iri in sources]

    def provide(self, engine: Engine) -> None:
        """Declare the streams of all mappings on an engine, after the declared ones."""
        self._app.map(engine)
        for name, mapping in self._read.items():
            table = self._declarations.now.mappings[name]
            engine.map(
                mapping,
                stream=table.get("stream"),
                time=table.get("time"),
                base=table.get("base"),
            )

    def listed(self) -> list[dict[str, Any]]:
        """List the mappings."""
        return [self._one(name) for name in sorted(self.made())]

    def _one(self, name: str) -> dict[str, Any]:
        sources, streams = self.made()[name]
        text, language = self._text(name)
        return {
            "name": name,
            "streams": list(streams),
            "sources": list(sources),
            "declared_by": "app" if name in self._app.mappings else "api",
            "language": language_of(text, language).upper(),
        }

    def _text(self, name: str) -> tuple[str, str | None]:
        table = self._declarations.now.mappings.get(name)
        if table is not None:
            return table["text"], table.get("language")
        app: AppMapping | None = self._app.mappings.get(name)
        if app is None:
            raise NotFoundError(f"there is no mapping {name!r}")
        return app.text, None

    def one(self, name: str) -> dict[str, Any]:
        """Return a mapping with its text.

        Raises:
            NotFoundError: there is none of the name.
        """
        text, _ = self._text(name)
        return {**self._one(name), "text": text, **self._declarations.now.mappings.get(name, {})}

    # --- declaring ---

    def put(self, name: str, table: Mapping[str, Any], pool: NetworkPool) -> bool:
        """Declare a mapping; return whether it is new.

        Raises:
            MappingError: it is not valid.
            ForbiddenError: it reads something else than declared streams.
            ConflictError: a query reads what another mapping of this name makes.
        """
        check_name(name, "mapping")
        given = _checked(table)
        mapping = self._parsed(given["text"], given.get("language"))
        check_mapping(mapping)
        sources = self._check_sources(mapping)
        with self._changing, pool.changing:
            if name in self._app.mappings:
                raise ForbiddenError(
                    f"the mapping {name!r} is in the application's file",
                    hint="Change it there, or choose another name.",
                )
            former = self._declarations.now.mappings.get(name)
            if former == given:
                return False
            if former is not None:
                self._check_unused(name, pool)
            stream = given.get("stream")
            makes = (stream,) if stream is not None else sources
            for iri in makes:
                self._check_free(iri, name)
            if len(self._read) >= self._settings.limits.mappings:
                raise PressureError("there are too many mappings", retry_after_s=60)

            def note(now: Declared) -> None:
                now.mappings[name] = given

            self._declarations.change(note)
            self._read[name] = mapping
            return former is None

    def _parsed(self, text: str, language: str | None) -> RmlMapping:
        most = self._settings.limits.mapping_chars
        if len(text) > most:
            raise LimitError(f"the mapping has {len(text):,} characters, and the limit is {most:,}")
        return parsed(text, language)

    def _check_sources(self, mapping: RmlMapping) -> tuple[str, ...]:
        for each in mapping.triples_maps:
            if not isinstance(each.source.source, DeclaredStream):
                raise ForbiddenError(
                    f"the triples map {each.name} reads something else than a declared stream",
                    hint="Declare a stream, and name it as the source; files and brokers are for "
                    "mappings of the application's file.",
                )
        if mapping.targets():
            raise ForbiddenError("a mapping that is declared over HTTP has no logical target")
        sources = sources_of(mapping)
        declared = self._streams.declared()
        for iri in sources:
            if iri not in declared:
                raise MappingError(
                    f"the mapping reads <{iri}>, which is not declared",
                    hint="PUT /streams/IRI declares a stream.",
                )
            if declared[iri].format.is_rdf:
                raise MappingError(f"<{iri}> is RDF already, and needs no mapping")
        return sources

    def _check_free(self, iri: str, name: str) -> None:
        maker = self.maker_of(iri)
        declared = self._streams.declared().get(iri)
        if (maker is not None and maker != name) or (
            declared is not None and declared.format.is_rdf
        ):
            raise ConflictError(
                f"there is another stream <{iri}>", hint='Name another one with "stream".'
            )

    def _check_unused(self, name: str, pool: NetworkPool) -> None:
        for iri in self.made()[name][1]:
            if pool.readers(iri):
                raise ConflictError(
                    f"queries read <{iri}>, which the mapping {name!r} makes",
                    hint="Delete these queries first.",
                )

    def delete(self, name: str, pool: NetworkPool) -> None:
        """Remove a mapping.

        Raises:
            NotFoundError: there is none of the name.
            ForbiddenError: it is in the application's file.
            ConflictError: a query reads what it makes.
        """
        with self._changing, pool.changing:
            if name in self._app.mappings:
                raise ForbiddenError(f"the mapping {name!r} is in the application's file")
            self._text(name)
            self._check_unused(name, pool)

            def drop(now: Declared) -> None:
                now.mappings.pop(name, None)

            self._declarations.change(drop)
            del self._read[name]

    # --- trying ---

    def preview(self, table: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
        """Map sample records; a mapping that is not valid is a problem with its place.

        Raises:
            UsageError: the request is not as it should be.
            NotFoundError: there is no mapping of the name.
        """
        records = table.get("records", [])
        if not isinstance(records, list) or not all(isinstance(one, str) for one in records):
            raise UsageError('"records" must be a list of texts, one for each record')
        if len(records) > _MOST_RECORDS or sum(map(len, records)) > _MOST_RECORD_CHARS:
            raise UsageError(
                f"a preview takes up to {_MOST_RECORDS} records of {_MOST_RECORD_CHARS:,} characters"
            )
        text, language = (
            self._text(name)
            if name is not None and "text" not in table
            else (table.get("text"), table.get("language"))
        )
        if not isinstance(text, str):
            raise UsageError('"text" must be a mapping')
        try:
            mapping = self._parsed(text, language)
            check_mapping(mapping)
            if table.get("source") is not None:
                mapping = _of_source(mapping, table["source"])
            if not records:
                return {"problem": None, "triples": [], "records": []}
            return {"problem": None, **self._mapped(mapping, records)}
        except QuadweirError as error:
            return {"problem": problem_of(error), "triples": [], "records": []}

    def _mapped(self, mapping: RmlMapping, records: list[str]) -> dict[str, Any]:
        # Positions are hashed where records become several elements; event times are as they came.
        given = [("sample", f"record {at}", 0, text, at, at) for at, text in enumerate(records)]
        frame = self._spark.createDataFrame(
            given,
            f"{rows.SOURCE} string, {rows.PLACE} string, {rows.ARRIVAL} bigint, "
            f"{rows.VALUE} string, {rows.POSITION} bigint, {rows.EVENT_TIME} bigint",
        )
        compiled = compile_frames(mapping, frame, timed=True)
        triples: list[list[str]] = [[] for _ in records]
        errors: list[dict[str, Any] | None] = [None for _ in records]
        for row in compiled.tagged().collect():
            place = str(row[rows.PLACE] or "").rpartition(" ")[2]
            reason = row[rows.REASON]
            if reason is not None:
                at = int(place) if place.isdigit() and int(place) < len(records) else 0
                errors[at] = problem_of(MappingError(f"the record cannot be mapped: {reason}"))
                continue
            terms = [row[each] for each in rows.TERMS]
            line = " ".join(each for each in terms if each is not None) + " ."
            triples[int(row[rows.EVENT_TIME])].append(line)
        return {
            "triples": [*Counter(line for own in triples for line in own)],
            "records": [
                {"index": at, "triples": sorted(set(own)), "error": error}
                for at, (own, error) in enumerate(zip(triples, errors, strict=True))
            ],
        }


def _of_source(mapping: RmlMapping, source: Any) -> RmlMapping:
    """Return the part of a mapping that reads one of its streams.

    Raises:
        UsageError: it does not read the stream.
    """
    maps = tuple(
        each
        for each in mapping.triples_maps
        if isinstance(each.source.source, DeclaredStream) and each.source.source.iri == source
    )
    if not maps:
        raise UsageError(f"the mapping reads no stream {str(source)[:200]!r}")
    return replace(mapping, triples_maps=maps)


def sources_of(mapping: RmlMapping) -> tuple[str, ...]:
    """Return the declared streams that a mapping reads."""
    found: Iterable[Any] = (each.source.source for each in mapping.triples_maps)
    return tuple(dict.fromkeys(each.iri for each in found if isinstance(each, DeclaredStream)))


def language_of(text: str, language: str | None) -> str:
    r"""Return the language of a mapping: `rml` or `yarrrml`.

    >>> language_of("mappings:\n  a: {}", None)
    'yarrrml'
    """
    if language is not None:
        return language.lower()
    lines = (line.strip() for line in text.splitlines())
    starts = ("mappings:", "prefixes:", "sources:", "mapping:", "m:", "base:", "authors:")
    return _YARRRML if any(line.startswith(starts) for line in lines) else _RML


def parsed(text: str, language: str | None) -> RmlMapping:
    """Read a mapping.

    Raises:
        MappingError: it is none.
        UsageError: there is no such language.
    """
    known = language_of(text, language)
    if known not in (_RML, _YARRRML):
        raise UsageError(f"there is no mapping language {known[:40]!r}", hint="Use rml or yarrrml.")
    return parse_yarrrml(text) if known == _YARRRML else parse_mapping(text)


def _checked(table: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [each for each in table if each not in _FIELDS]
    if unknown:
        raise UsageError(
            f"a mapping has no member {unknown[0]!r}", hint=f"It may have {', '.join(_FIELDS)}."
        )
    given = {name: value for name, value in table.items() if value is not None}
    times = given.get("time", "")
    for name, value in given.items():
        if not isinstance(value, str) and not (name == "time" and isinstance(times, dict)):
            raise UsageError(f"{name!r} must be a text")
    if "text" not in given:
        raise UsageError('a mapping needs a "text"')
    return given
