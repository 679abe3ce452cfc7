"""What the verbs that take a QUERY share: finding its text and reading it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from quadweir.errors import LimitError, QuerySyntaxError, SourceError, UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery

# The parser has its own, lower limit; this one keeps a wrong file from being read at all.
_MOST_BYTES: Final = 16_000_000

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file with a query, or - for standard input.")
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIALECT",
        help="sparql, rspql, csparql, cqels or cqels2; by default it is told from the text.",
    ),
]
ContentOption = Annotated[
    str | None,
    typer.Option(
        metavar="bag|graph", help="What windows hold, in place of the dialect's own choice."
    ),
]


def read_text(query: str) -> tuple[str, str]:
    """Give the text of a query and the name of where it came from.

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
    allow: tuple[str, ...] = ("FROM",),
) -> ContinuousQuery:
    """Read a query; FROM may name any graph, since names are only looked up in static data."""
    from quadweir.algebra.windows import Content
    from quadweir.syntax.read import parse

    kinds = {each.value: each for each in Content}
    if content is not None and content not in kinds:
        raise UsageError(f"windows hold no {content}", hint="Choose bag or graph.")
    return parse(
        text,
        dialect=dialect,
        source=source,
        content=kinds[content] if content is not None else None,
        allow=allow,
    )
