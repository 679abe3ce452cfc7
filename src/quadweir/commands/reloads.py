"""A hang-up signal lets a live run read its static data again."""

from __future__ import annotations

import signal
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, Self, final

from quadweir.errors import DataError, PlanError, SourceError, UnsupportedError

if TYPE_CHECKING:
    from quadweir.commands.board import Board


class HasStaticData(Protocol):
    """What runs over static data, such as a query or a network."""

    def reload_static(self) -> bool:
        """Read static data again; return whether it is different."""


def reload_static(running: HasStaticData, board: Board) -> None:
    """Reload static data; if that fails, continue with the current data."""
    try:
        changed = running.reload_static()
    except (SourceError, DataError, PlanError, UnsupportedError) as error:
        board.say(f"quadweir: the static data was not reloaded: {error.message}")
        return
    board.say(
        "quadweir: the new static data is used from this batch on"
        if changed
        else "quadweir: the static data is the same as before"
    )


@final
class Reloads:
    """While open, SIGHUP (`kill -HUP`) requests a reload of static data.

    >>> import os, signal
    >>> with Reloads() as reloads:
    ...     signal.raise_signal(signal.SIGHUP)
    ...     reloads.taken(), reloads.taken()
    (True, False)
    """

    def __init__(self) -> None:
        self._asked = False
        self._former: Any = None

    def __enter__(self) -> Self:
        self._former = signal.signal(signal.SIGHUP, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGHUP, self._former)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._asked = True

    def taken(self) -> bool:
        """Whether a reload was requested since the last call."""
        asked, self._asked = self._asked, False
        return asked
