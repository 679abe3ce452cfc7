"""`quadweir bench serve`: what the service takes."""

from __future__ import annotations

from typing import Annotated

import typer

from quadweir.commands.output import print_json, stderr_console


def serve(
    sections: Annotated[
        list[str] | None, typer.Option("--section", help="Measure only this; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, which show fixed costs only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Subscribers, pushes and registrations of `quadweir serve`."""
    from quadweir.bench.kernel import as_text
    from quadweir.bench.serving import QUICK, SECTIONS, ServeSize, run
    from quadweir.commands.serve import check_packages

    check_packages()
    for each in sections or ():
        if each not in SECTIONS:
            raise typer.BadParameter(f"{each}; there are {', '.join(SECTIONS)}")
    with stderr_console().status("starting") as status:
        result = run(
            sections or tuple(SECTIONS),
            size=QUICK if quick else ServeSize(),
            on_step=lambda name: status.update(name),
        )
    if as_json:
        print_json(result)
    else:
        print(as_text(result))
