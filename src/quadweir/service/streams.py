"""What requests say about streams, and what is pushed into them."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import UsageError
from quadweir.service.ldes import EventPages
from quadweir.service.outgoing import check_source
from quadweir.service.problems import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PressureError,
)
from quadweir.service.pushing import read_push
from quadweir.service.pushlog import PushLog
from quadweir.service.samples import sample_records
from quadweir.sources.declare import (
    PushSource,
    StreamDeclaration,
    schema,
    streams_of,
)
from quadweir.sources.schemacheck import first_problem
from quadweir.sources.tomlfile import AllowedPaths, TomlFile, problem_error

if TYPE_CHECKING:
    from quadweir.service.declarations import Declarations, Declared
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.settings import ServedApplication, ServiceSettings

_DEFAULT: Final[Mapping[str, Any]] = {"source": {"kind": "push"}, "format": "nquads"}
_MOST_KEY: Final = 200
# Not allowed in a declaration over HTTP: they name files, code or secrets of the operator.
_KEPT_BACK: Final = {"kafka": ("options",), "mqtt": ("password_env",)}


@final
class StreamDesk:
    """Answers requests about streams.

    Args:
        app: the application.
        settings: what the operator decides.
        declarations: the log of the service.
    """

    def __init__(
        self, app: ServedApplication, settings: ServiceSettings, declarations: Declarations
    ) -> None:
        self._app = app
        self._settings = settings
        self._declarations = declarations
        self._changing = threading.RLock()
        self._logs: dict[str, PushLog] = {}
        self._pages: dict[str, EventPages] = {}
        self._own: dict[str, StreamDeclaration] = {}
        for iri, table in declarations.now.streams.items():
            self._own[iri] = self._read(iri, table)
        for iri, declared in self.declared().items():
            self._open_log(iri, declared)

    # --- what there is ---

    def declared(self) -> dict[str, StreamDeclaration]:
        """Return all declarations, by IRI."""
        return {**self._own, **self._app.streams}

    def opened(self, starts: Mapping[str, int], reader: str) -> list[StreamDeclaration]:
        """Return all declarations as a network reads them.

        Args:
            starts: where it begins to read pushed streams.
            reader: its name.
        """
        return [
            replace(
                each,
                source=PushSource(
                    log=self._logs[iri].folder, start=starts.get(iri, 0), reader=reader
                ),
            )
            if isinstance(each.source, PushSource)
            else each
            for iri, each in self.declared().items()
        ]

    def starts(self) -> dict[str, int]:
        """Return where the pushed streams end now."""
        return {iri: log.end for iri, log in self._logs.items()}

    def read_by(self, network: str) -> dict[str, int]:
        """Return up to where a network has read each pushed stream for good."""
        return {iri: log.read_by(network) for iri, log in self._logs.items()}

    def rates(self) -> dict[str, float]:
        """Return how fast each pushed stream is."""
        return {iri: log.rate() for iri, log in self._logs.items()}

    def is_own(self, iri: str) -> bool:
        """Whether a stream was declared over HTTP."""
        return iri in self._own

    def shown(self, iri: str) -> dict[str, Any]:
        """Return the declaration of a stream without what may be a secret of the operator."""
        declared = self.declared()[iri]
        table = declared.as_table()
        hidden = _KEPT_BACK.get(declared.kind, ())
        source = {key: value for key, value in table["source"].items() if key not in hidden}
        return {**table, "source": source}

    def pushed(self, iri: str) -> dict[str, int] | None:
        """Return what was pushed into a stream; None if nothing can be."""
        log = self._logs.get(iri)
        if log is None:
            return None
        return {"records": log.records, "bytes": log.end, "unread": log.unread}

    def records(self, iri: str) -> list[str]:
        """Return some records of a stream, as samples for a mapping.

        Raises:
            NotFoundError: there is no such stream.
        """
        declared, log = self.declared().get(iri), self._logs.get(iri)
        if declared is None:
            raise NotFoundError(f"there is no stream <{iri}> that is declared")
        return sample_records(declared, log.folder if log is not None else None)

    def pages(self, iri: str) -> EventPages:
        """Return a pushed stream of RDF as a Linked Data Event Stream.

        Raises:
            NotFoundError: there is no such stream.
            ConflictError: it is not pushed, or no RDF.
        """
        declared, log = self.declared().get(iri), self._logs.get(iri)
        if declared is None:
            raise NotFoundError(f"there is no stream <{iri}>")
        if log is None or not declared.format.is_rdf:
            raise ConflictError(f"<{iri}> is not a stream into which RDF is pushed")
        return self._pages.setdefault(iri, EventPages(log.folder))

    # --- declaring ---

    def declare(self, iri: str, table: Mapping[str, Any] | None) -> bool:
        """Declare a stream; return whether it is new.

        Raises:
            DeclarationError: the declaration is not valid.
            ForbiddenError: the operator does not allow its source.
            ConflictError: there is another stream of this IRI.
        """
        given = dict(table if table else _DEFAULT)
        if given.get("source", {}) == {"kind": "push"}:
            given.setdefault("format", "nquads")
            if given["format"] != "timed-lines":
                given.setdefault("time", "arrival")
        declared = self._read(iri, given)
        self._check_allowed(declared, given)
        with self._changing:
            known = self.declared().get(iri)
            if known is not None:
                if known == declared:
                    return False
                raise ConflictError(
                    f"there is another stream <{iri}>",
                    hint="Delete it before you declare it again.",
                )
            if len(self._own) >= self._settings.limits.streams:
                raise PressureError("there are too many streams", retry_after_s=60)

            def note(now: Declared) -> None:
                now.streams[iri] = given

            self._open_log(iri, declared)
            self._declarations.change(note)
            self._own[iri] = declared
        return True

    def _read(self, iri: str, table: Mapping[str, Any]) -> StreamDeclaration:
        document = {"streams": {iri: dict(table)}}
        problem = first_problem(document, schema())
        if problem is not None:
            raise problem_error(problem, {})
        allowed = self._settings.allow_dirs
        # If the operator allows no folder, paths are resolved in one that does not exist.
        base = allowed[0] if allowed else self._settings.data / "no files are allowed"
        where = AllowedPaths(base, allowed, hint="Let the operator allow it with --allow-dir.")
        return streams_of(TomlFile(document, where, {}, ""))[iri]

    def _check_allowed(self, declared: StreamDeclaration, table: Mapping[str, Any]) -> None:
        kept_back = [
            name for name in _KEPT_BACK.get(declared.kind, ()) if name in table.get("source", {})
        ]
        if "dead_letters" in table:
            kept_back.append("dead_letters")
        if kept_back:
            raise ForbiddenError(
                f"a stream that is declared over HTTP has no {kept_back[0]!r}",
                hint="Let the operator declare it in the application's file.",
            )
        check_source(declared.source, self._settings.allow_hosts)

    def delete(self, iri: str, pool: NetworkPool, mapped: Iterable[str]) -> None:
        """Remove a stream.

        Args:
            iri: the stream.
            pool: the networks.
            mapped: the mappings that read it.

        Raises:
            NotFoundError: there is none of the IRI.
            ForbiddenError: it is in the application's file.
            ConflictError: it is in use.
        """
        with self._changing, pool.changing:
            if iri not in self._own:
                if iri in self._app.streams:
                    raise ForbiddenError(
                        f"<{iri}> is declared in the application's file",
                        hint="Remove it there, and start the service again.",
                    )
                raise NotFoundError(f"there is no stream <{iri}>")
            readers = [each.name for each in pool.readers(iri)]
            if readers or mapped:
                raise ConflictError(
                    f"<{iri}> is in use",
                    hint="Delete the queries and mappings that read it first.",
                )

            def drop(now: Declared) -> None:
                now.streams.pop(iri, None)

            self._declarations.change(drop)
            del self._own[iri]
            self._pages.pop(iri, None)
            log = self._logs.pop(iri, None)
            if log is not None:
                log.close()
                shutil.rmtree(log.folder, ignore_errors=True)

    # --- pushing ---

    def push(
        self,
        iri: str,
        body: bytes,
        media_type: str,
        *,
        time_ms: int | None,
        key: str,
        version: str | None = None,
    ) -> dict[str, Any]:
        """Keep a body that was pushed; once this returns, it survives a crash.

        Args:
            iri: the stream.
            body: the body.
            media_type: its content type.
            time_ms: the event time of what has none of its own; None for the time of arrival.
            key: recognises a body that is pushed again; empty for none.
            version: the version of RDF that the content type names.

        Raises:
            NotFoundError: there is no such stream.
            ConflictError: nothing can be pushed into it.
            QuadweirError: the body cannot be used.
        """
        declared = self.declared().get(iri)
        log = self._logs.get(iri)
        if declared is None:
            raise NotFoundError(
                f"there is no stream <{iri}>", hint="PUT /streams/IRI declares one."
            )
        if log is None:
            raise ConflictError(
                f"<{iri}> comes from {declared.kind}, and takes nothing over HTTP",
                hint='Declare a stream whose source is {"kind": "push"}.',
            )
        if len(key) > _MOST_KEY:
            raise UsageError(f"an Idempotency-Key has at most {_MOST_KEY} characters")
        now = time.time_ns() // 1_000_000
        found = read_push(
            body,
            media_type,
            str(declared.format),
            is_rdf=declared.format.is_rdf,
            time_ms=time_ms,
            version=version,
        )
        if not found.values:
            return {"accepted": 0, "elements": 0, "first": None, "last": None}
        pushed = log.append(
            found.values,
            found.times,
            now_ms=now,
            key=key,
            digest=hashlib.sha256(body).digest()[:16],
        )
        answer = {
            "accepted": found.statements or len(found.values),
            "elements": pushed.count,
            "first": pushed.first,
            "last": pushed.first + pushed.count - 1,
        }
        return {**answer, "repeated": True} if pushed.repeated else answer

    def _open_log(self, iri: str, declared: StreamDeclaration) -> None:
        if isinstance(declared.source, PushSource) and iri not in self._logs:
            if str(declared.format) == "csv":
                raise UsageError(
                    "records of CSV cannot be pushed: a line lacks the names of its columns",
                    hint="Push JSON.",
                )
            limits = self._settings.limits
            name = hashlib.sha256(iri.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            self._logs[iri] = PushLog(
                self._settings.data / "push" / name,
                most_bytes=limits.push_bytes,
                kept_bytes=limits.kept_bytes,
            )

    def forget(self, readers: Callable[[str], Iterable[tuple[str, int]]]) -> None:
        """Drop what all networks have read; `readers` says which read a stream, and from where."""
        for iri, log in list(self._logs.items()):
            log.forget(readers(iri))

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()
