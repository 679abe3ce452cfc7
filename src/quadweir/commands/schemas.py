"""The `--schema` option."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from quadweir.algebra.warn import QueryWarning
    from quadweir.entailment.schema import Schema, SchemaWarning

_MOST_TOLD: Final = 20

SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="RDFS and OWL axioms for entailment over streams and static data; repeatable.",
    ),
]


def schema_of(files: Iterable[str], *, tell: bool = True) -> Schema | None:
    """The schema of the command line, or None; its warnings are printed."""
    from quadweir.sources.schemafiles import read_schema

    named = list(files)
    if not named:
        return None
    schema, warnings = read_schema(named)
    if tell:
        tell_of(warnings)
    return schema


def tell_of(warnings: Sequence[SchemaWarning | QueryWarning]) -> None:
    """Print the warnings of a schema or a query on standard error."""
    for each in warnings[:_MOST_TOLD]:
        print(f"quadweir: warning: {each}", file=sys.stderr)
    if len(warnings) > _MOST_TOLD:
        print(f"quadweir: and {len(warnings) - _MOST_TOLD} more warnings", file=sys.stderr)
