"""Checks, without Spark and before anything starts, that the source of a stream exists.

A source may be gone when it is used later; readers check again.
"""

from __future__ import annotations

import socket
from typing import Final

from quadweir.errors import SourceError
from quadweir.kafkaclient import check_broker, is_secured
from quadweir.sources.declare import (
    FileSource,
    FolderSource,
    KafkaSource,
    MqttSource,
    ReplaySource,
    StreamDeclaration,
)

_CONNECT_SECONDS: Final = 5.0


def check_source(declaration: StreamDeclaration) -> None:
    """Check that files exist and that brokers answer.

    TCP servers are not asked: some serve only the first client that connects.

    Raises:
        SourceError: a file or folder does not exist, a broker does not answer, or it lacks the
            topic.
    """
    match declaration.source:
        case FileSource(path=path) | FolderSource(path=path) | ReplaySource(path=path):
            if not path.exists():
                raise SourceError(
                    f"<{declaration.iri}> is read from {path}, which does not exist",
                    hint="Check the path in its declaration.",
                    span=declaration.span,
                )
        case KafkaSource(servers=servers, topic=topic, options=options):
            if not is_secured(options):
                check_broker(servers, topic=topic)
        case MqttSource(host=host, port=port, tls=tls):
            where = host, port or (8883 if tls else 1883)
            try:
                socket.create_connection(where, _CONNECT_SECONDS).close()
            except OSError as error:
                raise SourceError(
                    f"no MQTT broker answers at {where[0]}:{where[1]}",
                    detail=str(error),
                    hint="Start the broker, or correct host and port.",
                ) from error
        case _:
            pass
