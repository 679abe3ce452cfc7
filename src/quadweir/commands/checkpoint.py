"""`quadweir checkpoint`: look at the checkpoint of a query that is stopped, and change it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadweir.commands.board import STARTING, Board
from quadweir.commands.output import print_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at the checkpoint of a stopped query, and change its shards.",
)

_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The checkpoint of a stopped query.")]
_Into = Annotated[
    Path | None,
    typer.Option(
        "--to-dir",
        metavar="NEW",
        help="Write the new checkpoint here. Default: it replaces DIR, and the old one is kept next to it.",
    ),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.callback()
def _root() -> None:
    """Look at the checkpoint of a stopped query, and change its shards."""


@app.command()
def info(folder: _Folder, as_json: _AsJson = False) -> None:
    """Show what a checkpoint has: its query, shards, offsets and the size of its state.

    It only reads, so the query may be running.
    """
    from quadweir.runtime.portable.describing import describe

    found = describe(folder)
    if as_json:
        print_json(found.as_data())
    else:
        typer.echo(found.as_text())


@app.command()
def reshard(
    folder: _Folder,
    shards: Annotated[
        int, typer.Option("--shards", metavar="N", min=1, help="The new number of shards.")
    ],
    into: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="NEW",
            help="Write the new checkpoint here. Default: it replaces DIR, and the old one is kept next "
            "to it.",
        ),
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Divide the state of a stopped query among another number of shards.

    The query then continues with `--shards N`, and gives the answers that it would have given.
    """
    from quadweir.runtime.portable.checkpoints import reshard as divide

    def change(spark: Callable[[], SparkSession], say: Callable[[str], None]) -> Path | None:
        return divide(folder, shards, into=into, spark=spark, say=say)

    _run(change, folder, into, as_json)


@app.command()
def move(
    folder: _Folder,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="executors|driver",
            help="Where its shards are next: in Spark's executors, or in local worker processes.",
        ),
    ],
    into: _Into = None,
    as_json: _AsJson = False,
) -> None:
    """Move the state of a stopped query to Spark's executors, or to local worker processes.

    The query then continues there, and gives the answers that it would have given.
    """
    from quadweir.runtime.portable.checkpoints import move as moved

    def change(spark: Callable[[], SparkSession], say: Callable[[str], None]) -> Path | None:
        return moved(folder, to, into=into, spark=spark, say=say)

    _run(change, folder, into, as_json)


def _run(
    change: Callable[[Callable[[], SparkSession], Callable[[str], None]], Path | None],
    folder: Path,
    into: Path | None,
    as_json: bool,
) -> None:
    """Change a checkpoint, show what is being done, and print where the new one is."""
    from quadweir.runtime.portable.describing import describe

    with ExitStack() as stack, Board() as board:

        def spark() -> SparkSession:
            from quadweir.runtime.spark.session import build

            board.start(STARTING)
            session = build(app_name="quadweir-checkpoint")
            stack.callback(session.stop)
            return session

        old = change(_once(spark), board.start)
    place = folder if into is None else into
    found = describe(place)
    if as_json:
        print_json({**found.as_data(), "before": None if old is None else str(old)})
        return
    typer.echo(f"{place} has {found.shards} in {found.where}.")
    typer.echo(
        f"Start the query with: --checkpoint {place} --shards {found.most} --shards-in {found.host}"
    )
    if old is not None:
        typer.echo(f"The old checkpoint is {old}; remove it when you no longer need it.")


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    made: list[Any] = []

    def get() -> Any:
        if not made:
            made.append(make())
        return made[0]

    return get
