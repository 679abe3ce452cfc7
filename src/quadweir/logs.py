"""Messages on standard error as JSON lines, for whoever collects logs: `QUADWEIR_LOGS=json`."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOBase
from typing import Final, TextIO, final

from quadweir.errors import UsageError

VARIABLE: Final = "QUADWEIR_LOGS"
_OURS: Final = re.compile(
    r"(?:quadweir: )?(?:(?P<level>error|warning)(?:\[(?P<code>[A-Z-]+)\])?: )?(?P<message>.*)"
)
_SPARK: Final = re.compile(
    r"spark: \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<logger>[^:]*): (?P<message>.*)"
)
_STYLE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def wants_json() -> bool:
    """Whether messages are to be JSON lines.

    Raises:
        UsageError: the variable asks for something else.
    """
    form = os.environ.get(VARIABLE, "")
    if form not in ("", "text", "json"):
        raise UsageError(f"{VARIABLE}={form[:40]} is no format", hint="Choose text or json.")
    return form == "json"


@contextmanager
def json_messages() -> Iterator[None]:
    """While open, write each line of standard error as JSON, if that is asked for."""
    if not wants_json():
        yield
        return
    before = sys.stderr
    sys.stderr = JsonLines(before)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def entry(line: str) -> dict[str, str]:
    """Return a line as an entry of a log.

    >>> found = entry("quadweir: error[QW-USAGE]: no such file")
    >>> found["level"], found["code"], found["message"]
    ('error', 'QW-USAGE', 'no such file')
    """
    line = _STYLE.sub("", line)
    found = _SPARK.fullmatch(line) or _OURS.fullmatch(line)
    parts = found.groupdict() if found is not None else {"message": line}
    level = (parts.get("level") or "info").lower()
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": {"warn": "warning"}.get(level, level),
        "source": parts.get("logger") or "quadweir",
        **({"code": parts["code"]} if parts.get("code") else {}),
        "message": parts["message"].rstrip(),
    }


@final
class JsonLines(TextIOBase):
    """A text stream that writes each line as a JSON object.

    Args:
        out: where the lines go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = ""
        self._lock = threading.Lock()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._out.encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._out.fileno()

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).replace("\r\n", "\n").split("\n")
            for line in lines:
                self._put(line)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            if self._begun:
                self._put(self._begun)
                self._begun = ""
            self._out.flush()

    def _put(self, line: str) -> None:
        if line.strip():
            self._out.write(json.dumps(entry(line), ensure_ascii=False) + "\n")
