"""`quadweir convert`: RDF files from one format to another."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from quadweir.commands.output import print_json, printable, stderr_console
from quadweir.errors import DataError, UsageError
from quadweir.private import make_folder

if TYPE_CHECKING:
    from quadweir.commands.conversion import ConversionOutcome
    from quadweir.sources.rdfdocuments import BadQuad


class ConvertFormat(StrEnum):
    """The formats as the command line names them."""

    NTRIPLES = "ntriples"
    NQUADS = "nquads"
    TURTLE = "turtle"
    TRIG = "trig"
    RDFXML = "rdfxml"
    JSONLD = "jsonld"
    N3 = "n3"
    JELLY = "jelly"


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The file to read.")],
    target: Annotated[
        str, typer.Argument(metavar="OUT", help="The file to write; - is standard output.")
    ],
    source_format: Annotated[
        ConvertFormat | None,
        typer.Option("--from", help="The format of IN, if its name does not show it."),
    ] = None,
    target_format: Annotated[
        ConvertFormat | None,
        typer.Option("--to", help="The format of OUT, if its name does not show it."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="Resolve relative IRIs against this one.")
    ] = None,
    merge_graphs: Annotated[
        bool, typer.Option("--merge-graphs", help="Put every quad into the default graph.")
    ] = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep unreadable records here, as JSON Lines."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Write nothing and exit with 4 if a line is wrong.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Convert RDF files between N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD, N3 and Jelly.

    The extensions determine the formats; .gz means gzip. A line of N-Triples or N-Quads
    that does not parse is skipped and counted. An error in another format ends the file there and
    the command with exit code 4.
    """
    from quadweir.commands.conversion import Conversion
    from quadweir.commands.conversion import convert as run
    from quadweir.fileformats import format_of

    to_stdout = target == "-"
    if to_stdout and target_format is None:
        raise UsageError(
            "standard output has no name that says the format", hint="Add --to nquads."
        )
    if to_stdout and as_json:
        raise UsageError("--json and OUT both want standard output", hint="Name a file as OUT.")
    job = Conversion(
        source=source,
        target=None if to_stdout else Path(target),
        source_format=str(source_format or format_of(source.name)),
        target_format=str(target_format or format_of(target)),
        base=base,
        merge_graphs=merge_graphs,
    )
    with ExitStack() as stack:
        letters: TextIO | None = None
        if dead_letters is not None:
            make_folder(dead_letters.parent)
            letters = stack.enter_context(dead_letters.open("w", encoding="utf-8"))

        def on_bad(item: BadQuad) -> None:
            if letters is not None:
                letter = {
                    "source": str(source),
                    "place": item.place,
                    "reason": item.reason,
                    "record": item.record,
                }
                letters.write(json.dumps(letter, ensure_ascii=False) + "\n")
            if strict:
                raise DataError(
                    f"{source}, {item.place}: {item.reason}",
                    hint="Fix it, or convert without --strict to skip it.",
                )

        outcome = run(job, on_bad=on_bad, on_bytes=_progress(source, stack))
    _finish(job.source_format, outcome, source, target, as_json)


def _progress(source: Path, stack: ExitStack) -> Callable[[int], None]:
    if not sys.stderr.isatty() or not source.is_file():
        return lambda _: None
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from quadweir.sources.lines import is_gzip

    # The unpacked size of a gzip stream is unknown before its end.
    total = None if is_gzip(source) else source.stat().st_size
    bar = Progress(
        "converting",
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=stderr_console(),
        transient=True,
    )
    stack.enter_context(bar)
    task = bar.add_task("converting", total=total)
    return lambda done: bar.update(task, completed=done)


def _finish(
    source_format: str, outcome: ConversionOutcome, source: Path, target: str, as_json: bool
) -> None:
    shown = [
        {"place": item.place, "reason": item.reason, "record": item.record}
        for item in outcome.first_bad
    ]
    if as_json:
        print_json(
            {
                "source": str(source),
                "target": target,
                "quads": outcome.quads,
                "bad": outcome.bad,
                "first_bad": shown,
            }
        )
    else:
        print(f"{outcome.quads} quads written, {outcome.bad} not read", file=sys.stderr)
        for item in outcome.first_bad:
            print(printable(f"  {source}, {item.place}: {item.reason}"), file=sys.stderr)
    if outcome.bad and source_format not in ("ntriples", "nquads"):
        raise DataError(
            f"{source} could not be read to its end",
            hint=f"Everything before {outcome.first_bad[0].place} was converted.",
        )
