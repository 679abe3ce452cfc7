"""A visitor at another terminal, while a live command runs in this process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable


class Visitor(threading.Thread):
    """Acts as a user at another terminal while the command runs."""

    def __init__(self, visit: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.visit = visit
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.visit()
        except BaseException as error:  # the test reports it, in its own thread
            self.error = error
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    def leave(self) -> None:
        """Wait for its end, and raise its error.

        Its Ctrl-C comes too late if the command ended by itself, and must not end the run of tests.
        """
        while self.is_alive():
            with contextlib.suppress(KeyboardInterrupt):
                self.join()
        if self.error is not None:
            raise self.error
