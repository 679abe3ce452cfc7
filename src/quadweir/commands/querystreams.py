"""`--stream IRI=...` as a stream declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.sources.declare import DeclaredSource, Format, StreamDeclaration

_LIVE = ("kafka:", "tcp:", "mqtt:")


@final
@dataclass(frozen=True, slots=True)
class Named:
    """A stream of the command line."""

    iri: str
    target: str

    @property
    def is_live(self) -> bool:
        """Whether it does not come from files."""
        return self.target.startswith(_LIVE)


def parse_streams(given: Sequence[str], base: str | None = None) -> list[Named]:
    """The streams of `--stream` options; relative names are resolved as in the query.

    Raises:
        UsageError: one is not IRI=PATH, or two name the same stream.
    """
    from quadweir.sources.staticfiles import cut_assignment
    from quadweir.syntax.iris import resolve

    found: dict[str, Named] = {}
    for each in given:
        iri, target = cut_assignment(each, relative=True)
        if iri is None or not target:
            raise UsageError(
                f"--stream {each} is not IRI=PATH",
                hint="Write --stream http://example.org/s=s.stream",
            )
        if base is not None:
            iri = resolve(iri, base)
        if iri in found:
            raise UsageError(f"--stream <{iri}> is given twice", hint="Put its files in a folder.")
        found[iri] = Named(iri, target)
    return list(found.values())


def predicates(query: ContinuousQuery) -> dict[str, str]:
    """The predicates that windows take event times from, by stream."""
    from quadweir.terms import IRI

    return {
        window.stream.value: window.event_time.value
        for window in query.windows
        if window.event_time is not None and isinstance(window.stream, IRI)
    }


def declare(
    named: Named,
    timed_by: Mapping[str, str],
    *,
    live: bool,
    delay: timedelta | None,
    idle: timedelta | None,
    ahead: timedelta | None = None,
) -> StreamDeclaration:
    """Declare a stream of the command line.

    The extension of a file decides between timed lines and timed graphs. Kafka, TCP and MQTT carry
    timed lines, or N-Triples if the query takes event times from a predicate.
    """
    from quadweir.sources.declare import (
        LIVE_DELAY,
        Envelope,
        Format,
        FromPredicate,
        StreamDeclaration,
    )

    predicate = timed_by.get(named.iri)
    source = _source(named, live=live)
    if named.is_live:
        form = Format.NTRIPLES if predicate is not None else Format.TIMED_LINES
    else:
        form = _guess(Path(named.target))
    inside = predicate is not None and form is not Format.TIMED_LINES
    declared = StreamDeclaration(
        iri=named.iri,
        source=source,
        format=form,
        time=FromPredicate(predicate) if inside and predicate is not None else Envelope(),
        delay=delay if delay is not None else LIVE_DELAY if live else timedelta(0),
        idle=idle,
    )
    return declared if ahead is None else replace(declared, ahead=ahead)


def _guess(path: Path) -> Format:
    from quadweir.sources.declare import Format
    from quadweir.sources.streamfiles import guess_form

    return Format(guess_form(path).value)


def _source(named: Named, *, live: bool) -> DeclaredSource:
    from quadweir.sources.declare import (
        FileSource,
        FolderSource,
        KafkaSource,
        MqttSource,
        TcpSource,
    )

    kind, _, rest = named.target.partition(":")
    if named.is_live and not live:
        raise UsageError(
            f"<{named.iri}> comes from {named.target} and has no end", hint="Add --live."
        )
    match kind if named.is_live else "path":
        case "kafka":
            servers, _, topic = rest.rpartition("/")
            if not servers or not topic:
                raise UsageError(f"not a Kafka topic: {rest}", hint="Write kafka:HOST:PORT/TOPIC.")
            return KafkaSource(servers=servers, topic=topic)
        case "tcp":
            host, _, port = rest.rpartition(":")
            return TcpSource(host=host or "127.0.0.1", port=_port(port, rest))
        case "mqtt":
            server, slash, topic = rest.partition("/")
            if not slash or not topic:
                raise UsageError(f"not an MQTT topic: {rest}", hint="Write mqtt:HOST:PORT/TOPIC.")
            host, colon, port = server.partition(":")
            number = _port(port, rest) if colon else None
            return MqttSource(host=host or "127.0.0.1", port=number, topic=topic)
    path = Path(named.target)
    if not path.exists():
        raise UsageError(
            f"no such file or folder: {path}", hint=f"Check the path of --stream <{named.iri}>."
        )
    if path.is_dir():
        return FolderSource(path=path, watch=live)
    if live:
        raise UsageError(
            f"{path} is a file, which has an end",
            hint="Leave --live out, or name a folder to watch, or play it with quadweir replay.",
        )
    return FileSource(path=path)


def _port(text: str, whole: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise UsageError(f"no port in {whole}", hint="Write HOST:PORT.")
    return int(text)


def parse_option(name: str, text: str) -> timedelta:
    """Read a duration of the command line."""
    from quadweir.times import parse_duration

    try:
        return parse_duration(text)
    except DataError as error:
        raise UsageError(f"{name}: {error.message}", hint=error.hint) from None
