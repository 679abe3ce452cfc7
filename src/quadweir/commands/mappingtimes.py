"""`--time [SOURCE=]REFERENCE`: the references that hold the event times of a mapping's records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.mapping.model import Mapping

TimeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--time",
        metavar="[SOURCE=]REFERENCE",
        help="The reference that holds the event time of records: in the source of that path, topic or "
        "IRI, else in every source whose declaration names none; repeatable.",
    ),
]


def parse_times(given: Sequence[str], mappings: Iterable[Mapping] = ()) -> dict[str, str]:
    """Read `--time` options: references by the names of sources, "" for all others.

    >>> parse_times(["measured_at", "flow.csv=time"])
    {'': 'measured_at', 'flow.csv': 'time'}

    Args:
        given: the options.
        mappings: the mappings whose sources they may name.

    Raises:
        UsageError: one names no reference or no source, or two are about the same source.
    """
    from quadweir.mapping.records import describe

    sources = dict.fromkeys(describe(one.source) for each in mappings for one in each.triples_maps)
    found: dict[str, str] = {}
    for each in given:
        source, _, reference = each.rpartition("=")
        if not reference:
            raise UsageError(
                f"--time {each} names no reference", hint="Write --time SOURCE=REFERENCE."
            )
        if source and sources and source not in sources:
            raise UsageError(
                f"--time {each}: no mapping reads {source}",
                hint=f"The sources are {', '.join(sources)}.",
            )
        if source in found:
            of = f" of {source}" if source else ""
            raise UsageError(f"--time gives the event time{of} twice", hint="Keep one of the two.")
        found[source] = reference
    return found
