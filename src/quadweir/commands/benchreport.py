"""`quadweir bench report`: the whole benchmark as one page."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadweir.commands.output import print_json, stderr_console
from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from quadweir.bench.peer_process import ProcessPeer
    from quadweir.bench.suite import BenchmarkPiece


def report(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The folder for the page, the figures and the data."),
    ] = Path("bench-report"),
    quick: Annotated[
        bool, typer.Option(help="Small sizes: minutes instead of a quarter of an hour.")
    ] = False,
    sections: Annotated[
        list[str] | None, typer.Option("--section", help="Only this section; may be repeated.")
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME=COMMAND",
            help="Another engine, as a program; NAME:csparql=COMMAND for C-SPARQL's texts.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown, too.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what was measured before.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """LSBench and related workloads: which queries run, whether answers are right, and how fast.

    The exit code is 4 if an answer is wrong or a piece fails; the page is written in any case.

    Each result is kept in OUT: an interrupted run continues where it stopped, as long as the commit
    and the machine are the same.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from quadweir.bench.markdown import write_markdown
    from quadweir.bench.page import write
    from quadweir.bench.report import SECTIONS, Plan, all_pieces, make_report, measure, wrong

    for section in sections or ():
        if section not in SECTIONS:
            raise UsageError(f"no section {section}", hint=f"There are: {', '.join(SECTIONS)}.")
    chosen = tuple(sections or SECTIONS)
    more = [_peer(each) for each in others or ()]
    if fresh:
        shutil.rmtree(out / "pieces", ignore_errors=True)
    plan = Plan.of(quick=quick)
    console = stderr_console()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=len(all_pieces(plan, chosen, more=more)))
        begun = 0

        def tell(piece: BenchmarkPiece, known: bool) -> None:
            nonlocal begun
            words = f"{piece.section}: {piece.name}"
            progress.update(task, completed=begun, description=words)
            begun += 1
            if not sys.stderr.isatty() and not known:
                console.print(words)

        try:
            result = measure(plan, out, chosen, more=more, on_piece=tell)
        except KeyboardInterrupt:
            console.print(f"interrupted; the same command continues after {begun - 1} pieces")
            raise
    commands = [["quadweir", "bench", *_given(quick, sections, others), str(out)]]
    made = make_report(result, commands)
    page, data = write(made, result, out, "report")
    if markdown is not None:
        write_markdown(made, markdown)
    if as_json:
        print_json(result)
    else:
        print(made.summary)
        print(f"{page}\n{data}")
    if problems := wrong(result):
        raise DataError(
            f"{len(problems)} of the pieces failed or gave wrong answers: {problems[0]}",
            hint=f"{page} lists all of them.",
        )


def _given(quick: bool, sections: list[str] | None, others: list[str] | None) -> list[str]:
    words = ["report"] + (["--quick"] if quick else [])
    for name, values in (("--section", sections), ("--peer", others)):
        for value in values or ():
            words += [name, value]
    return words


def _peer(text: str) -> ProcessPeer:
    """Read NAME=COMMAND or NAME:DIALECT=COMMAND.

    >>> _peer("CQELS:cqels=java -jar engine.jar").name
    'CQELS'
    """
    from quadweir.bench.peer_process import ProcessPeer
    from quadweir.bench.workloads import DIALECTS

    name, _, command = text.partition("=")
    name, _, dialect = name.partition(":")
    if not name or not shlex.split(command) or (dialect and dialect not in DIALECTS):
        raise UsageError(
            f"not a peer: {text}",
            hint=f"Write NAME=COMMAND, or NAME:DIALECT=COMMAND with one of {', '.join(DIALECTS)}.",
        )
    return ProcessPeer(name, shlex.split(command), dialect=dialect or "cqels")
