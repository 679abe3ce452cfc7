"""`quadweir translate`: rewrite a query from one dialect in another."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quadweir.commands.output import print_json
from quadweir.commands.querytext import (
    BaseOption,
    ContentOption,
    DialectOption,
    QueryArgument,
    read_query,
    read_text,
)


def translate(
    query: QueryArgument,
    to: Annotated[
        str, typer.Option("--to", metavar="DIALECT", help="rspql, csparql, cqels or sparqlstream.")
    ],
    dialect: DialectOption = None,
    content: ContentOption = None,
    base: BaseOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if meaning is lost.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the text and the warnings as JSON.")
    ] = False,
) -> None:
    """Rewrite a query in another dialect.

    The new text goes to standard output. If it cannot express a part of the meaning, such as when
    the query reports, a warning on standard error says so.
    """
    from quadweir.errors import UnsupportedError
    from quadweir.syntax.write import declared_prefixes, write

    text, source = read_text(query)
    read = read_query(
        text, source, dialect=dialect, content=content, base=base, allow=("FROM", "SERVICE")
    )
    written = write(read, to, prefixes=declared_prefixes(text))
    if as_json:
        warnings = [
            {
                "aspect": warning.aspect,
                "message": warning.message,
                "place": str(warning.span) if warning.span is not None else None,
            }
            for warning in written.warnings
        ]
        print_json({"dialect": to, "query": written.text, "warnings": warnings})
    else:
        sys.stdout.write(written.text)
        for warning in written.warnings:
            place = f"{warning.span}: " if warning.span is not None else ""
            message = f"quadweir: warning[{warning.aspect}]: {place}{warning.message}"
            print(message, file=sys.stderr)
    if strict and written.warnings:
        lost = ", ".join(dict.fromkeys(warning.aspect for warning in written.warnings))
        raise UnsupportedError(
            f"the translation does not keep: {lost}", hint="Without --strict this is a warning."
        )
