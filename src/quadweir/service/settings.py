"""What the operator of a service decides, and what the file of its application says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from quadweir.engine import Engine
    from quadweir.runtime.network.querytext import QueryText
    from quadweir.sinks.base import Sink, TextSink
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.staticfiles import StaticFile

PORT: Final = 7474


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """How much requests may ask for.

    Attributes:
        networks: how many networks run at once; each has its own Spark query and worker processes.
        queries: how many queries there are.
        streams: how many streams are declared over HTTP.
        mappings: how many mappings are declared over HTTP.
        subscribers: how many subscribers there are.
        body_bytes: how large the body of a request may be.
        bodies_bytes: how large all bodies may be together that are being read or kept.
        query_chars: how long a query may be.
        mapping_chars: how long a mapping may be.
        ring_bytes: how many bytes of answers each network keeps for subscribers that resume.
        waiting_bytes: how many bytes may wait for one subscriber.
        head_s: after how long a connection is closed whose request has not said what it wants.
        stall_s: after how long a client that reads nothing is dropped.
        push_bytes: how many bytes of a pushed stream may wait to be read.
        kept_bytes: how many bytes of a pushed stream are kept after they were read.
    """

    networks: int = 8
    queries: int = 100_000
    streams: int = 1_000
    mappings: int = 1_000
    subscribers: int = 10_000
    body_bytes: int = 16 * 2**20
    bodies_bytes: int = 256 * 2**20
    query_chars: int = 200_000
    mapping_chars: int = 1_000_000
    ring_bytes: int = 32 * 2**20
    waiting_bytes: int = 2**20
    head_s: float = 10.0
    stall_s: float = 20.0
    push_bytes: int = 2**30
    kept_bytes: int = 64 * 2**20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AppMapping:
    """A mapping of the application's file.

    Attributes:
        text: the mapping.
        streams: the streams that it makes.
        sources: the streams of records that it reads.
    """

    text: str
    streams: tuple[str, ...]
    sources: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AppQuery:
    """A query of the application's file: its text, where its answers also go, and if it is paused."""

    text: QueryText
    sink: Sink | None = None
    is_paused: bool = False


def _no_mappings(_engine: Engine) -> None:
    return


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApplication:
    """What the file of an application says.

    Attributes:
        streams: the declared streams, by IRI.
        read: the streams that queries can read.
        map: declares the streams that mappings make.
        mappings: the mappings, by name.
        queries: the queries, by name.
        output: where all answers go, in addition to subscribers.
    """

    name: str = "quadweir"
    streams: Mapping[str, StreamDeclaration] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    map: Callable[[Engine], None] = _no_mappings
    mappings: Mapping[str, AppMapping] = field(default_factory=dict)
    queries: Mapping[str, AppQuery] = field(default_factory=dict)
    schema: tuple[Path, ...] = ()
    static: tuple[StaticFile, ...] = ()
    shards: int | None = None
    every: timedelta | None = None
    most_held: int | None = None
    most_answers: int | None = None
    output: TextSink | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the operator decides.

    Attributes:
        data: the folder of everything that survives a restart.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        hosts: the names by which clients reach the service, in addition to those of loopback.
        allow_dirs: folders that declarations and mappings may read.
        allow_hosts: hosts that declarations, mappings and webhooks may connect to.
        limits: how much requests may ask for.
        behind_proxy: whether a proxy does TLS, so that clients come over https.
        page: the folder of the page; None for the one in the package.
        options: settings of uvicorn, such as a certificate.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    allow_dirs: tuple[Path, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    behind_proxy: bool = False
    page: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
