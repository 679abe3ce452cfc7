"""`quadweir bench cloud`: many queries in one network."""

from __future__ import annotations

from typing import Annotated

import typer

from quadweir.commands.output import print_json, stderr_console


def cloud(
    sections: Annotated[
        list[str] | None, typer.Option("--section", help="Measure only this; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    most: Annotated[
        int | None, typer.Option(min=1, help="The most queries; default 100,000.")
    ] = None,
    triples: Annotated[
        int | None, typer.Option(min=10_000, help="Triples in a batch; default 1,000,000.")
    ] = None,
    batches: Annotated[
        int | None, typer.Option(min=1, help="Batches that count; default 3.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Many queries in one network, next to few, with answers compared first."""
    from quadweir.bench.cloud import SECTIONS, run
    from quadweir.bench.cloudsize import sized
    from quadweir.bench.kernel import as_text

    for each in sections or ():
        if each not in SECTIONS:
            raise typer.BadParameter(f"{each}; there are {', '.join(SECTIONS)}")
    with stderr_console().status("starting") as status:
        result = run(
            sections or tuple(SECTIONS),
            size=sized(quick=quick, most=most, triples=triples, batches=batches),
            on_step=lambda name: status.update(name),
        )
    if as_json:
        print_json(result)
    else:
        print(as_text(result))
