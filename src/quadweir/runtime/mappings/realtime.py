"""Which mappings Spark's real-time mode can run, and which streams they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quadweir.errors import UnsupportedError
from quadweir.mapping.compile import Compiled
from quadweir.mapping.functions.compile import uses_python
from quadweir.mapping.model import FunctionExecution, TriplesMap
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.records import describe
from quadweir.mapping.sources import (
    DeclaredStream,
    FileStream,
    KafkaStream,
    LogicalSource,
    MqttStream,
    TcpStream,
    WebSocketStream,
)
from quadweir.sources.declare import KafkaSource, StreamDeclaration

_MICRO_BATCHES: Final = "Run it with --live instead: micro-batches take all of this."


def kafka_topics(
    mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]
) -> list[tuple[str, str]]:
    """The Kafka topics that a mapping reads, each as (brokers, topic), one for each pass."""
    found: dict[LogicalSource, tuple[str, str]] = {}
    for triples_map in mapping.triples_maps:
        kafka = _kafka_of(triples_map.source, declarations)
        if kafka is not None:
            found[triples_map.source] = kafka
    return list(found.values())


def _kafka_of(
    logical: LogicalSource, declarations: Mapping[str, StreamDeclaration]
) -> tuple[str, str] | None:
    match logical.source:
        case KafkaStream(brokers=brokers, topic=topic):
            return brokers, topic
        case DeclaredStream(iri=iri) if iri in declarations:
            declared = declarations[iri].source
            if isinstance(declared, KafkaSource):
                return declared.servers, declared.topic
    return None


def reads_streams(mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]) -> bool:
    """Whether some source of a mapping is unbounded."""
    return any(_goes_on(each.source, declarations) for each in mapping.triples_maps)


def _goes_on(logical: LogicalSource, declarations: Mapping[str, StreamDeclaration]) -> bool:
    match logical.source:
        case KafkaStream() | TcpStream() | MqttStream() | WebSocketStream() | FileStream():
            return True
        case DeclaredStream(iri=iri):
            return not declarations[iri].has_end
        case _:
            return False


def check_realtime_sources(
    mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]
) -> None:
    """Refuse sources that Spark's real-time mode cannot read; the error names the source.

    Raises:
        UnsupportedError: a source is not Kafka.
    """
    for triples_map in mapping.triples_maps:
        if _kafka_of(triples_map.source, declarations) is None:
            raise UnsupportedError(
                f"real-time mode reads Kafka only; triples map {triples_map.name} reads "
                f"{describe(triples_map.source)} ({_kind(triples_map.source)})",
                hint=_MICRO_BATCHES,
                span=triples_map.span,
            )


def check_realtime(
    mapping: RmlMapping,
    compiled: Compiled,
    declarations: Mapping[str, StreamDeclaration] | None = None,
) -> None:
    """Refuse a mapping that Spark's real-time mode cannot run; the error names the part.

    Raises:
        UnsupportedError: a source is not Kafka, a topic is read twice, Python or a join takes part,
            or there are logical targets.
    """
    hint = _MICRO_BATCHES
    check_realtime_sources(mapping, declarations or {})
    for triples_map in mapping.triples_maps:
        for execution in _executions(triples_map):
            if uses_python(execution):
                raise UnsupportedError(
                    f"real-time mode runs no Python; triples map {triples_map.name} calls "
                    f"{execution.function}",
                    hint=hint,
                    span=execution.span or triples_map.span,
                )
    for group in compiled.groups:
        if group.records.uses_python:
            raise UnsupportedError(
                f"real-time mode runs no Python; over {group.records.shown}, "
                f"{group.records.how[-1]}",
                hint=hint,
                span=group.logical.span,
            )
    if compiled.joins:
        raise UnsupportedError(f"real-time mode has no joins; {compiled.joins[0].how}", hint=hint)
    if compiled.targets:
        raise UnsupportedError(
            f"real-time mode writes to Kafka only; there is a logical target, "
            f"{compiled.targets[0].path}",
            hint=hint,
            span=compiled.targets[0].span,
        )
    for group in compiled.groups:
        if group.is_timed and group.has_several_graphs:
            raise UnsupportedError(
                f"real-time mode sends one message for a record, and {group.records.shown} makes quads "
                "in several graphs, each of which is an element",
                hint=hint,
                span=group.logical.span,
            )
    topics = kafka_topics(mapping, declarations or {})
    for number, topic in enumerate(topics):
        if topic in topics[:number]:
            raise UnsupportedError(
                f"real-time mode reads a topic once; {topic[1]} is read as several logical sources",
                hint="Give its triples maps the same iterator and formulation, or run it with "
                "--live instead.",
            )


def _kind(logical: LogicalSource) -> str:
    return {
        "MappedFile": "a file",
        "FileStream": "a folder",
        "TcpStream": "a TCP server",
        "MqttStream": "an MQTT broker",
        "FrameSource": "a DataFrame",
        "DeclaredStream": "a stream that is not declared as Kafka",
    }.get(type(logical.source).__name__, "a source of another kind")


def _executions(triples_map: TriplesMap) -> Iterator[FunctionExecution]:
    for term in triples_map.term_maps():
        if isinstance(term.expression, FunctionExecution):
            yield term.expression
        if term.condition is not None:
            yield term.condition
    for item in triples_map.ref_object_maps():
        if item.condition is not None:
            yield item.condition
