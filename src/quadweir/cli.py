"""The command line: the list of verbs, how errors end a run, nothing more.

Each verb lives in `quadweir.commands`, where heavy imports stand inside the functions: `--help`
must answer before Spark could be imported.
"""

from __future__ import annotations

import sys

import typer

from quadweir._version import __version__
from quadweir.errors import QuadweirError

app = typer.Typer(
    name="quadweir",
    help="Turn live data into RDF streams and answer continuous SPARQL queries over them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"quadweir {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    del version


def main() -> None:
    """Run the command line and end with the exit code that `docs/reference/cli.md` promises."""
    try:
        app()
    except QuadweirError as error:
        print(f"quadweir: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("quadweir: interrupted", file=sys.stderr)
        sys.exit(130)
