"""Checks before Spark starts, which takes seconds: outputs, sources, static data, checkpoints.

These checks are early, not final: everything is checked again when it is used.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.errors import SourceError, UsageError
from quadweir.private import check_writable, make_folder

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.staticfiles import StaticFile

# Reading larger static data takes longer than Spark needs to start.
_MOST_STATIC_BYTES: Final = 4 << 20


def check_file(path: Path) -> None:
    """Make sure that a file can be written, or replaced.

    Raises:
        SourceError: it cannot.
    """
    try:
        if "\0" in str(path):
            raise ValueError("its name has a NUL character in it")
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if path.exists():
            with path.open("ab"):
                return
        make_folder(path.parent)
        check_writable(path.parent)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"cannot write {path}: {getattr(error, 'strerror', None) or error}",
            hint="Name a file that you may write.",
        ) from error


def check_query_inputs(
    query: ContinuousQuery,
    *,
    declared: Iterable[StreamDeclaration],
    streams_file: Path | None,
    static: Iterable[str],
    schema: Iterable[str],
    mapped: Collection[str] = (),
    live: bool,
) -> None:
    """Check the inputs of a query: static data, schema, and all streams that no mapping makes.

    Raises:
        QuadweirError: an input is not declared, is missing, or has the wrong format.
    """
    from quadweir.sources.declare import load, schema_files
    from quadweir.terms import IRI

    known = load(streams_file) if streams_file is not None else {}
    known = {**known, **{each.iri: each for each in declared}}
    check_declared(query, {**known, **dict.fromkeys(mapped)})
    read = {window.stream for window in query.windows}
    named = {each.value for each in read if isinstance(each, IRI)}
    # A stream variable reads all declared streams.
    wanted = sorted(named) if len(named) == len(read) else [*known]
    streams = [known[each] for each in wanted if each not in mapped]
    declared_files = schema_files(streams_file) if streams_file is not None else ()
    check_inputs(streams, static=static, schema=[*schema, *declared_files], live=live)


def check_declared(query: ContinuousQuery, known: Iterable[str]) -> None:
    """Make sure that a query reads only streams that are known.

    Raises:
        UsageError: it reads another one.
    """
    from quadweir.sources.declare import undeclared
    from quadweir.terms import IRI

    known = list(known)
    for window in query.windows:
        if isinstance(window.stream, IRI) and window.stream.value not in known:
            raise undeclared(window.stream.value, known, span=window.span)


def check_inputs(
    streams: Iterable[StreamDeclaration],
    *,
    static: Iterable[str | StaticFile],
    schema: Iterable[Path | str],
    live: bool,
) -> None:
    """Check streams, static data and schema files.

    Raises:
        QuadweirError: one is missing, or has the wrong format.
    """
    from quadweir.sources.reach import check_source
    from quadweir.sources.schemafiles import read_schema

    streams = list(streams)
    _check_ends(streams, live=live)
    for each in streams:
        check_source(each)
    check_static(static)
    read_schema(schema)


def _check_ends(streams: Iterable[StreamDeclaration], *, live: bool) -> None:
    for each in streams:
        if live and each.has_end:
            raise UsageError(
                f"<{each.iri}> is read from files and has an end",
                hint="Watch the folder (watch = true), replay the files, or leave --live out.",
                span=each.span,
            )
        if not live and not each.has_end:
            raise UsageError(f"<{each.iri}> has no end", hint="Add --live.", span=each.span)


def check_static(named: Iterable[str | StaticFile]) -> None:
    """Make sure that static files are there and, unless they are large, that they can be read.

    Raises:
        SourceError: one is not there.
        DataError: the content of one does not match its extension.
    """
    from quadweir.sources.staticfiles import StaticFile, list_static, read_static

    files = [each if isinstance(each, StaticFile) else StaticFile.of(each) for each in named]
    size = sum(file.stat().st_size for each in files for file in list_static(each.path))
    if size <= _MOST_STATIC_BYTES:
        for _ in read_static(files):
            pass


def check_checkpoint(checkpoint: Path, query: ContinuousQuery) -> None:
    """Refuse a checkpoint that was made for another query.

    Raises:
        StateError: it was.
    """
    from quadweir.optimize.pipeline import optimize
    from quadweir.runtime.checkpoint import Fingerprint

    Fingerprint.check_query(checkpoint, optimize(query).query)


def check_port(port: int) -> None:
    """Make sure that a port of this machine is free.

    Raises:
        UsageError: it is not.
    """
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used for metrics: {error.strerror}",
            hint="Choose another with --metrics-port.",
        ) from None
