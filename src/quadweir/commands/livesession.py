"""What every live command does around its run: a checkpoint, a session, a display, Ctrl-C."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.commands.board import STARTING, Board
from quadweir.commands.faults import naming_full_disk
from quadweir.commands.interrupts import Interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL: Final = timedelta(seconds=1)


@contextmanager
def claimed_checkpoint(
    given: Path | None, verb: str, output: str | None, option: str = "--checkpoint"
) -> Iterator[Path]:
    """The checkpoint of a run, which no other process can use; without a name, a temporary folder.

    Args:
        given: the folder that the user named.
        verb: the command.
        output: where the run writes to; named in the error if the disk is full there.
        option: the option that names the folder, for hints.

    Raises:
        StateError: another process uses it.
    """
    from quadweir.runtime.claims import Claim

    with ExitStack() as stack:
        checkpoint = given or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=f"quadweir-{verb}-"))
        )
        stack.enter_context(naming_full_disk(checkpoint, output))
        stack.enter_context(Claim(checkpoint, option))
        yield checkpoint


@final
@dataclass(frozen=True, slots=True)
class LiveSession:
    """What a live run works with.

    Attributes:
        spark: the session.
        board: the display.
        interrupts: say whether the user wants the run to end.
    """

    spark: SparkSession
    board: Board
    interrupts: Interrupts

    def watch(self, wait: Callable[[timedelta], bool], show: Callable[[], None]) -> None:
        """Call `show` each second until the run ends, or until Ctrl-C or SIGTERM.

        Args:
            wait: waits for the end of the run for some time, and says whether it has ended.
            show: shows how the run is.
        """
        while not self.interrupts.seen and not wait(_POLL):
            show()


@contextmanager
def live_session(
    verb: str, doing: str, *, master: str | None = None, shards: int | None = None
) -> Iterator[LiveSession]:
    """Start Spark for a live run, and show that.

    Args:
        verb: the command.
        doing: what the run does once Spark has started.
        master: the Spark master.
        shards: into how many parts state is divided.
    """
    from quadweir.runtime.spark.session import build

    with ExitStack() as stack:
        board = stack.enter_context(Board())
        board.start(STARTING)
        spark = build(app_name=f"quadweir-{verb}", master=master, shards=shards)
        stack.callback(spark.stop)
        interrupts = stack.enter_context(Interrupts())
        board.start(doing)
        yield LiveSession(spark, board, interrupts)
