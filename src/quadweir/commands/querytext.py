"""The QUERY argument: finding the text of a query and parsing it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quadweir.errors import DataError, LimitError, QuerySyntaxError, SourceError, UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.algebra.windowing import Windowing

# The parser has its own, lower limit; this one stops before a wrong file is read at all.
_MOST_BYTES: Final = 16_000_000

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file with a query, or - for standard input.")
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIALECT",
        help="sparql, rspql, csparql, cqels, cqels2 or sparqlstream; default: recognised from the text.",
    ),
]
ContentOption = Annotated[
    str | None,
    typer.Option(metavar="bag|graph", help="What windows hold. Default: by dialect."),
]
BaseOption = Annotated[
    str | None,
    typer.Option(metavar="IRI", help="Resolves relative IRIs, unless the query has BASE."),
]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="INSTANT",
        help="t0 of windows with a step: milliseconds since 1970, or 2026-03-03T05:30:00Z.",
    ),
]
FullWindowsOption = Annotated[
    bool,
    typer.Option("--full-windows", help="Count only full windows: the first one opens at --start."),
]
ReportOption = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="content-change|window-close",
        help="When to report. Default: by dialect.",
    ),
]


def windowing_of(start: str | None, full: bool, report: str | None) -> Windowing:
    """The options about windows.

    Raises:
        UsageError: a value is not valid.
    """
    from quadweir.algebra.windowing import ReportOn, Windowing
    from quadweir.times import parse_time

    if report is not None and report not in list(ReportOn):
        raise UsageError(f"there is no report {report}", hint=f"Choose {' or '.join(ReportOn)}.")
    try:
        start_ms = parse_time(start) if start is not None else None
    except DataError as error:
        raise UsageError(
            f"--start: {error.message}",
            hint="Write milliseconds since 1970, or 2026-03-03T05:30:00Z.",
        ) from None
    return Windowing(
        start_ms=start_ms, full=full, report=ReportOn(report) if report is not None else None
    )


def read_text(query: str) -> tuple[str, str]:
    """The text of a query, and the name of its source.

    Raises:
        SourceError: the file cannot be read.
        QuerySyntaxError: it is not text.
    """
    try:
        if query == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(query).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise SourceError(
            f"no such file: {query}", hint="QUERY is a file, or - for standard input."
        ) from None
    except OSError as error:
        raise SourceError(f"cannot read {query}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise LimitError(f"{query} is larger than {_MOST_BYTES:,} bytes, too large for a query")
    try:
        return data.decode("utf-8-sig"), "standard input" if query == "-" else query
    except UnicodeDecodeError as error:
        raise QuerySyntaxError(
            f"{query} is not UTF-8 text: byte {error.start} cannot be read"
        ) from None


def read_query(
    text: str,
    source: str,
    *,
    dialect: str | None = None,
    content: str | None = None,
    base: str | None = None,
    allow: tuple[str, ...] = ("FROM",),
    windowing: Windowing | None = None,
) -> ContinuousQuery:
    """Parse a query; FROM may name any graph, because names are only looked up in static data."""
    from quadweir.algebra.windowing import AS_WRITTEN, with_windowing
    from quadweir.algebra.windows import Content
    from quadweir.syntax.read import parse

    kinds = {each.value: each for each in Content}
    if content is not None and content not in kinds:
        raise UsageError(f"windows hold no {content}", hint="Choose bag or graph.")
    found = parse(
        text,
        dialect=dialect,
        base=base,
        source=source,
        content=kinds[content] if content is not None else None,
        allow=allow,
    )
    return with_windowing(found, windowing or AS_WRITTEN)
