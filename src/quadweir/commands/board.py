"""The part of standard error that shows how a run fares: redrawn on a terminal, lines elsewhere.

What goes to the same terminal while it is drawn, such as answers, has to be printed above it. Else the
next drawing would cover it.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final, Self, TextIO, cast, final

from quadweir.commands.output import printable, stderr_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

STARTING: Final = "starting Spark, which takes 5 to 20 seconds"


@final
class Board:
    """Shows one thing at a time until it is closed.

    Args:
        console: where to; default: standard error.
        draws: draw on a terminal; if not, there are lines as elsewhere.
        speaks: say off a terminal what is being done.
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
        """Make one for a run that has an end, and say whether its results go to standard output.

        Results that share its terminal come at once, and would be drawn over. Off a terminal it is
        silent, for scripts.
        """
        console = stderr_console()
        shares = prints and _are_one_terminal(sys.stdout, console.file)
        return cls(console, draws=not shares, speaks=False)

    def __enter__(self) -> Self:
        if self.is_drawn:
            from rich.live import Live

            # Standard output may be a file, so it stays what it is. Messages are printed above.
            self._live = Live(console=self._console, refresh_per_second=4, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def is_drawn(self) -> bool:
        """Whether there is a terminal to draw on; if not, `say` is the only way to show anything."""
        return self._draws and self._console.is_terminal

    def start(self, what: str) -> None:
        """Show what is being done, until something else is shown."""
        if self._live is None:
            if self._speaks:
                self.say(f"quadweir: {what}", style="dim")
            return
        from rich.spinner import Spinner
        from rich.text import Text

        self.draw(Spinner("dots", Text(printable(what))))

    def draw(self, what: RenderableType) -> None:
        """Show something in place of what was shown before; nothing happens off a terminal."""
        if self._live is not None:
            self._live.update(what, refresh=True)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line, above what is drawn."""
        self._console.print(printable(text), markup=False, style=style, soft_wrap=True)

    def output(self) -> TextIO:
        """Give standard output; what is written to it and flushed appears above what is drawn."""
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
    """Prints what was written above what is drawn on a console, whenever it is flushed."""

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
