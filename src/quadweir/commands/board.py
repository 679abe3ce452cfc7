"""The status display on standard error: redrawn on a terminal, plain lines elsewhere.

Other output to the same terminal, for example answers, must be printed above the display. Otherwise
the next redraw would cover it.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final, Self, TextIO, cast, final

from quadweir.commands.output import described, printable, stderr_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from quadweir.errors import QuadweirError

STARTING: Final = "starting Spark, which takes 5 to 20 seconds"


@final
class Board:
    """Shows one status at a time until it is closed.

    Args:
        console: the console to draw on; by default standard error.
        draws: whether to redraw on a terminal; otherwise it prints lines there too.
        speaks: whether to print lines if there is no terminal.
    """

    def __init__(
        self, console: Console | None = None, *, draws: bool = True, speaks: bool = True
    ) -> None:
        self._console = console if console is not None else stderr_console()
        self._draws = draws
        self._speaks = speaks or self._console.is_terminal
        self._live: Live | None = None

    @classmethod
    def of_bounded(cls, *, prints: bool) -> Self:
        """A board for a bounded run; `prints` says whether results go to standard output.

        Results on the same terminal come all at once, and a redraw would cover them. Without a
        terminal the board is silent, for scripts.
        """
        console = stderr_console()
        shares = prints and _are_one_terminal(sys.stdout, console.file)
        return cls(console, draws=not shares, speaks=False)

    def __enter__(self) -> Self:
        if self.is_drawn:
            from rich.live import Live

            # Standard output may be a file, so it is not replaced. Messages are printed above the
            # display.
            self._live = Live(console=self._console, refresh_per_second=4, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def is_drawn(self) -> bool:
        """Whether there is a terminal to draw on; if not, only `say` shows anything."""
        return self._draws and self._console.is_terminal

    def start(self, what: str) -> None:
        """Show the current step until something else is shown."""
        if self._live is None:
            if self._speaks:
                self.say(f"quadweir: {what}", style="dim")
            return
        from rich.spinner import Spinner
        from rich.text import Text

        self.draw(Spinner("dots", Text(printable(what))))

    def draw(self, what: RenderableType) -> None:
        """Replace the display; does nothing without a terminal."""
        if self._live is not None:
            self._live.update(what, refresh=True)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line above the display."""
        self._console.print(printable(text), markup=False, style=style, soft_wrap=True)

    def report(self, error: QuadweirError) -> None:
        """Print an error above the display; the run goes on."""
        self._console.print(described(error), soft_wrap=True)

    def output(self) -> TextIO:
        """A stream for standard output; flushed text appears above the display."""
        if self.is_drawn and _are_one_terminal(sys.stdout, self._console.file):
            return cast(TextIO, _Above(self._console))
        return sys.stdout


def _are_one_terminal(one: TextIO, other: object) -> bool:
    try:
        names = [os.ttyname(each.fileno()) for each in (one, cast(TextIO, other))]
    except (OSError, ValueError, AttributeError):
        return False
    return names[0] == names[1]


@final
class _Above(io.StringIO):
    """On each flush, prints the written text above the display of a console."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def flush(self) -> None:
        text = self.getvalue()
        if not text:
            return
        self.seek(0)
        self.truncate()
        self._console.print(
            printable(text), markup=False, emoji=False, highlight=False, soft_wrap=True, end=""
        )
