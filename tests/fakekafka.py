"""A server that answers like a Kafka broker, with clusters and topics that a real one would not
have."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_API_VERSIONS, _METADATA = 18, 3
_UNSUPPORTED_VERSION = 35


@contextmanager
def fake_broker(
    *, problem: int = 0, partitions: int = 1, member: tuple[str, int] | None = None
) -> Iterator[str]:
    """Answer requests for metadata; every topic has this error code and this number of partitions.

    Args:
        problem: the error code of each topic.
        partitions: how many each topic has.
        member: the one broker of the cluster; None for this one.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        lead = member or (host, port)
        thread = threading.Thread(target=_serve, args=(server, lead, problem, partitions))
        thread.start()
        try:
            yield f"{host}:{port}"
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, lead: tuple[str, int], problem: int, partitions: int) -> None:
    clients = []
    while True:
        try:
            connection = server.accept()[0]
        except OSError:
            break
        thread = threading.Thread(target=_answer, args=(connection, lead, problem, partitions))
        thread.start()
        clients.append((connection, thread))
    for connection, thread in clients:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        thread.join()
        connection.close()


def _answer(
    connection: socket.socket, lead: tuple[str, int], problem: int, partitions: int
) -> None:
    with suppress(OSError, struct.error), connection.makefile("rb") as requests:
        while True:
            (size,) = struct.unpack(">i", requests.read(4))
            request = requests.read(size)
            key, version, number = struct.unpack_from(">hhi", request)
            if key == _API_VERSIONS:
                supported = ((_METADATA, 0, 4), (_API_VERSIONS, 0, 0))
                error = _UNSUPPORTED_VERSION if version else 0
                body = struct.pack(">hi", error, len(supported))
                body += b"".join(struct.pack(">hhh", *each) for each in supported)
            else:
                assert (key, version) == (_METADATA, 4)
                body = _metadata(_asked(request), lead, problem, partitions)
            connection.sendall(struct.pack(">ii", len(body) + 4, number) + body)


def _asked(request: bytes) -> list[bytes]:
    (client,) = struct.unpack_from(">h", request, 8)
    at = 10 + client
    (count,) = struct.unpack_from(">i", request, at)
    at += 4
    names = []
    for _ in range(max(count, 0)):
        (length,) = struct.unpack_from(">h", request, at)
        names.append(request[at + 2 : at + 2 + length])
        at += 2 + length
    return names


def _metadata(topics: list[bytes], lead: tuple[str, int], problem: int, partitions: int) -> bytes:
    def text(value: bytes) -> bytes:
        return struct.pack(">h", len(value)) + value

    host, port = lead
    body = struct.pack(">iii", 0, 1, 1) + text(host.encode()) + struct.pack(">ih", port, -1)
    body += text(b"cluster") + struct.pack(">ii", 1, len(topics))
    for topic in topics:
        body += struct.pack(">h", problem) + text(topic) + struct.pack(">bi", 0, partitions)
        for number in range(partitions):
            # Its leader, its replicas and those in step are all the one broker.
            body += struct.pack(">hiiiiii", 0, number, 1, 1, 1, 1, 1)
    return body
