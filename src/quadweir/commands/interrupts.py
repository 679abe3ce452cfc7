"""Ctrl-C and SIGTERM as a flag that a loop can check, instead of an exception inside a call to
Spark.

A KeyboardInterrupt inside Spark's Python gateway breaks the gateway's connection. Then the query
cannot be stopped cleanly, and the user sees a traceback.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self, final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@final
class Interrupts:
    """While open, the first Ctrl-C or SIGTERM sets `seen`; a second one interrupts at once.

    Open it after the Spark session has started, because pyspark sets its own handler then.

    >>> import signal
    >>> with Interrupts() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupts.seen
    True
    """

    def __init__(self) -> None:
        self.seen = False
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._former = {each: signal.signal(each, self._note) for each in _ENDING}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, former in self._former.items():
            signal.signal(each, former)
        # A signal to the whole process group ends Spark too, in the middle of a call.
        if self.seen and error is not None and _is_lost_connection(error):
            raise KeyboardInterrupt from error

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True


def _is_lost_connection(error: BaseException) -> bool:
    from py4j.protocol import Py4JNetworkError

    return isinstance(error, (ConnectionError, EOFError, Py4JNetworkError))


@contextmanager
def terminated_in_order() -> Iterator[None]:
    """While open, SIGTERM ends the run as Ctrl-C does, so that scratch files and processes are
    removed.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def quieten_gateway() -> None:
    """Keep Spark's gateway from logging a traceback for each Ctrl-C; the command line reports it."""
    logging.getLogger().addFilter(_is_no_gateway_interrupt)


def _is_no_gateway_interrupt(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


def caused_by_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C caused an exception; Spark's gateway turns it into its own exceptions.

    >>> try:
    ...     try:
    ...         raise KeyboardInterrupt
    ...     except KeyboardInterrupt:
    ...         raise OSError("connection lost")
    ... except OSError as error:
    ...     caused_by_interrupt(error)
    True
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, KeyboardInterrupt):
            return True
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return False
