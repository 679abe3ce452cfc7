"""`--dead-letters` of live runs: the sink that a folder or a Kafka topic names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.sinks.base import Sink
    from quadweir.sinks.kafka import KafkaSink

KAFKA: Final = "kafka:"


def letter_sink(target: str | None, *, name: str) -> Sink | None:
    """The sink for a target: a folder, or a Kafka topic.

    Raises:
        UsageError: it names no topic.
    """
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    if target is None:
        return None
    if target.startswith(KAFKA):
        return kafka_sink(target, LineFormat.JSONL, name=name)
    return FileSink(Path(target), LineFormat.JSONL)


def kafka_sink(target: str, form: str, *, name: str) -> KafkaSink:
    """The broker and the topic of `kafka:HOST:PORT/TOPIC`.

    Raises:
        UsageError: it names none.
    """
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.lineformat import LineFormat

    servers, _, topic = target.removeprefix(KAFKA).rpartition("/")
    if not servers or not topic:
        raise UsageError(f"not a Kafka topic: {target}", hint="Write kafka:HOST:PORT/TOPIC.")
    return KafkaSink(servers, topic, LineFormat(form), name=name)
