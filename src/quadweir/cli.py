"""The command line: the list of verbs, how a run ends, nothing more.

Each verb lives in its own module of `quadweir.commands`. Only the module of the verb that is asked
for is imported, so `--help` answers at once however many verbs there are and whatever they need.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import typer

from quadweir._version import __version__
from quadweir.commands.interrupts import caused_by_interrupt, quieten_gateway, terminated_in_order
from quadweir.commands.output import report, report_unexpected
from quadweir.errors import NotImplementedYetError, QuadweirError
from quadweir.logs import json_messages
from quadweir.private import private_files

INTERRUPTED: Final = 130


class Verb(NamedTuple):
    """One line of `quadweir --help`."""

    name: str
    summary: str

    @property
    def module(self) -> str:
        """The name of its module; the module may not exist yet."""
        return f"quadweir.commands.{self.name}"

    def exists(self) -> bool:
        """Whether the module exists; it is not imported."""
        return importlib.util.find_spec(self.module) is not None


VERBS: Final = (
    Verb("demo", "Watch motorway sensors become an RDF stream, live."),
    Verb("doctor", "Check this machine for what Quadweir needs, and say how to fix it."),
    Verb("convert", "Convert RDF files between formats."),
    Verb("replay", "Play recorded files as a live stream."),
    Verb("map", "Turn records into RDF with an RML mapping."),
    Verb("query", "Answer a continuous query over RDF streams."),
    Verb("run", "Run many queries over the same streams, in one network."),
    Verb("serve", "Serve streams, queries and answers over HTTP, and a page that shows them."),
    Verb("checkpoint", "Look at the checkpoint of a stopped query, and change its shards."),
    Verb("explain", "Show how a query will be answered."),
    Verb("translate", "Rewrite a query in another dialect."),
    Verb("bench", "Measure performance, next to a baseline in the same run."),
)


def build(chosen: str | None = None) -> typer.Typer:
    """The application; only the verb `chosen` is imported, the others are only listed.

    >>> [command.name for command in build().registered_commands][:2]
    ['demo', 'doctor']
    """
    app = typer.Typer(
        name="quadweir",
        help="Turn live data into RDF streams and answer continuous SPARQL queries over them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Formatting help with rich would double the time of the whole command.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for verb in VERBS:
        if not verb.exists():
            _register_place(app, verb)
        elif verb.name == chosen:
            _register(app, verb)
        else:
            app.command(verb.name, help=verb.summary)(lambda: None)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end with the exit code that `docs/reference/cli.md` promises."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # The options before the verb take no values, so the first other word is the verb.
    chosen = next((word for word in words if not word.startswith("-")), None)
    quieten_gateway()
    with ExitStack() as messages:
        try:
            messages.enter_context(json_messages())
            with private_files(), terminated_in_order():
                build(chosen)(args=words, prog_name="quadweir")
        except QuadweirError as error:
            if _debugging():
                raise
            report(error)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            _say_interrupted()
            sys.exit(INTERRUPTED)
        except SystemExit as end:
            if end.code == INTERRUPTED:
                _say_interrupted()
            raise
        except Exception as error:
            if caused_by_interrupt(error):
                _say_interrupted()
                sys.exit(INTERRUPTED)
            if _debugging():
                raise
            sys.exit(report_unexpected(error))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"quadweir {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
    debug: bool = typer.Option(False, "--debug", hidden=True, help="Show tracebacks."),
) -> None:
    del version
    if debug:
        os.environ["QUADWEIR_DEBUG"] = "1"


def _register(app: typer.Typer, verb: Verb) -> None:
    module = importlib.import_module(verb.module)
    group = getattr(module, "app", None)
    if isinstance(group, typer.Typer):
        app.add_typer(group, name=verb.name, help=verb.summary)
        return
    function: Callable[..., Any] = getattr(module, verb.name)
    app.command(verb.name, help=_help_text(function))(function)


def _register_place(app: typer.Typer, verb: Verb) -> None:
    def place() -> None:
        raise NotImplementedYetError(
            f"`quadweir {verb.name}` is not part of this version",
            hint="`quadweir --help` lists what is; CHANGELOG.md says what came when.",
        )

    app.command(
        verb.name,
        help=f"{verb.summary.rstrip('.')} (not available yet).",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(place)


def _help_text(function: Callable[..., Any]) -> str:
    """The part of a docstring that is shown as help."""
    text = inspect.getdoc(function) or ""
    return re.split(r"^(?:Args|Raises|Returns|Examples?):|^>>> ", text, maxsplit=1, flags=re.M)[0]


def _debugging() -> bool:
    return os.environ.get("QUADWEIR_DEBUG", "") not in ("", "0")


def _say_interrupted() -> None:
    print("quadweir: interrupted", file=sys.stderr)


if __name__ == "__main__":
    main()
