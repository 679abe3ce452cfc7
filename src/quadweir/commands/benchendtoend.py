"""`quadweir bench endtoend`: text files to statements, and text files to answers in a file."""

from __future__ import annotations

from typing import Annotated

import typer

from quadweir.commands.output import print_json, stderr_console


def endtoend(
    sections: Annotated[
        list[str] | None, typer.Option("--section", help="Measure only this; may be repeated.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--query", metavar="Q1", help="Ask only this query; may be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days of the network whose lines are read.")
    ] = None,
    triples: Annotated[
        int | None, typer.Option(min=10_000, help="Triples in a batch; default 400,000.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Text files to statements, and text files to answers in a file."""
    from quadweir.bench.endtoend import SECTIONS, run, sized
    from quadweir.bench.kernel import as_text
    from quadweir.bench.textqueries import LEAST

    for given, known in ((sections, SECTIONS), (names, LEAST)):
        for each in given or ():
            if each not in known:
                raise typer.BadParameter(f"{each}; there are {', '.join(known)}")
    with stderr_console().status("starting") as status:
        result = run(
            sections or tuple(SECTIONS),
            size=sized(quick=quick, days=days, triples=triples, names=names or ()),
            on_step=lambda name: status.update(name),
        )
    if as_json:
        print_json(result)
    else:
        print(as_text(result))
