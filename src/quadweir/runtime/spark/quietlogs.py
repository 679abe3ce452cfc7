"""Standard error of Spark's Python workers, without the messages that nobody needs.

Spark announces some workers as they start. A worker whose query was stopped prints a traceback
about its broken pipe. Both would appear in the middle of a display. All other lines are passed on.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK: Final = "quadweir.chatter"
_STANDARD_ERROR: Final = 2
_QUIET_SECONDS: Final = 0.5
_CHUNK: Final = 1 << 16

_ANNOUNCED: Final = re.compile(r"(Starting )?Streaming TransformWithState\w* Python worker\b")
_BEGIN: Final = "Traceback (most recent call last):"
_LINKS: Final = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
_PEER_GONE: Final = ("BrokenPipeError", "ConnectionResetError")
# By itself, this may also be an error of the user's.
_ENDED: Final = "EOFError"


@final
class Sieve:
    """Takes lines and returns those to show.

    >>> sieve = Sieve()
    >>> sieve.take("Starting Streaming TransformWithStateInPandas Python worker.")
    []
    >>> sieve.take("a message")
    ['a message']
    """

    def __init__(self) -> None:
        self._block: list[str] = []
        # Several workers may print at once, line by line. This counts the tracebacks that have not
        # ended yet, and keeps the last lines of those that have.
        self._open = 0
        self._errors: list[str] = []
        self._is_linked = False
        self._was_dropped = False

    def take(self, line: str) -> list[str]:
        """Take a line; lines of a traceback are kept until it ends."""
        if self._block:
            if self._goes_on(line):
                self._block.append(line)
                return []
            return self.rest() + self.take(line)
        if line == _BEGIN:
            self._block, self._open, self._errors, self._is_linked = [line], 1, [], False
            return []
        is_dropped = bool(_ANNOUNCED.match(line)) or (self._was_dropped and not line.strip())
        self._was_dropped = is_dropped
        return [] if is_dropped else [line]

    def rest(self, *, is_cut: bool = False) -> list[str]:
        """Return the lines that were kept, unless they are only about broken pipes.

        Args:
            is_cut: Java has ended. A traceback that was cut off before its error is then dropped
                if all others are about broken pipes.
        """
        block, self._block = self._block, []
        gone = [error for error in self._errors if error.startswith(_PEER_GONE)]
        ended = [error for error in self._errors if error.startswith(_ENDED)]
        are_gone = len(gone) + len(ended) == len(self._errors) and bool(gone or not ended)
        is_over = are_gone and (is_cut or (bool(self._errors) and not self._open))
        is_spark = any("/pyspark/" in line for line in block)
        is_empty = is_cut and all(line == _BEGIN for line in block)
        self._was_dropped = is_over and (is_spark or is_empty)
        return [] if self._was_dropped else block

    def _goes_on(self, line: str) -> bool:
        """Whether a line belongs to the present tracebacks."""
        if not line.strip():
            return True
        if line.startswith(_LINKS):
            self._is_linked = True
            return True
        if line == _BEGIN and (self._open or self._is_linked):
            self._open += 1
            self._is_linked = False
            return True
        if not self._open:
            return False
        if not line.startswith(" "):
            self._open -= 1
            self._errors.append(line)
        return True


def sift(spark: SparkSession) -> None:
    """Filter the standard error of this session's Java and its workers from now on."""
    context: Any = spark.sparkContext
    system = context._jvm.java.lang.System
    if os.name != "posix" or system.getProperty(_MARK) is not None:
        return
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder, "said")
        os.mkfifo(pipe, 0o600)
        # Non-blocking: Java opens the other end only after this.
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        java_io = context._jvm.java.io
        system.setErr(java_io.PrintStream(java_io.FileOutputStream(str(pipe)), True))
    system.setProperty(_MARK, "sifted")
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    threading.Thread(target=_pass_on, args=(reading,), daemon=True, name=_MARK).start()


def _pass_on(reading: int) -> None:
    """Read lines until Java ends, and print those to show."""
    sieve = Sieve()
    begun = b""
    while True:
        is_ready, _, _ = select.select([reading], [], [], _QUIET_SECONDS)
        if not is_ready:
            _say(sieve.rest())
            continue
        chunk = os.read(reading, _CHUNK)
        *lines, begun = (begun + chunk).split(b"\n")
        for line in lines:
            _say(sieve.take(line.decode(errors="replace")))
        if not chunk:
            _say([*sieve.rest(is_cut=True), *([begun.decode(errors="replace")] if begun else [])])
            os.close(reading)
            return


def _say(lines: list[str]) -> None:
    if lines:
        os.write(_STANDARD_ERROR, "".join(f"{line}\n" for line in lines).encode())
