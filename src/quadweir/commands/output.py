"""The output that all verbs share: JSON results on standard output, messages on standard error."""

from __future__ import annotations

import json
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir import errors
from quadweir.commands.faults import known_fault
from quadweir.errors import InternalError, QuadweirError
from quadweir.spans import Span, excerpt

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# An excerpt is only a help for the reader, so larger files are not read for it.
_MOST_SOURCE_BYTES: Final = 4_000_000
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The form of one of our errors from a Spark Python worker in the driver's message.
_FROM_WORKER: Final = re.compile(r"^(?:.*\W)?quadweir\.errors\.(\w+): (.+)$", re.MULTILINE)


def print_json(value: Any) -> None:
    """Print a result for programs: one JSON document and a line feed on standard output."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def stderr_console() -> Console:
    """Make a console for progress; colourless off a terminal and where `NO_COLOR` is set."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def printable(text: str) -> str:
    r"""Spell out control codes, which can come from data and which a terminal would obey.

    >>> printable("a\x1b[2J\tb")
    'a\\x1b[2J\tb'
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def report(error: QuadweirError) -> None:
    """Print an error: its code, its place, the text there, why, and what to do."""
    stderr_console().print(described(error), soft_wrap=True)


def described(error: QuadweirError) -> Text:
    """An error in words, as `report` prints it."""
    from rich.text import Text

    line = Text("quadweir: ")
    line.append(f"error[{error.code}]", style="bold red")
    line.append(": ")
    if error.span is not None:
        line.append(printable(f"{error.span}: "), style="bold")
    line.append(printable(error.message))
    if error.span is not None and (shown := _excerpt(error.span)):
        line.append(printable(f"\n{shown}"), style="cyan")
    if error.detail:
        line.append(printable(f"\n{error.detail}"))
    if error.hint:
        line.append("\nhint: ", style="bold green")
        line.append(printable(error.hint))
    return line


def report_unexpected(error: Exception) -> int:
    """Print an unexpected exception and return the exit code of the run.

    Our own errors from a Spark worker arrive as text inside Spark's exception; they are reported in
    their original form.
    """
    fault = known_fault(error)
    found = _FROM_WORKER.findall(str(error))
    if found:
        name, message = found[-1]
        kind = getattr(errors, name, None)
        # What the machine refused a worker is an internal error only to those who started it.
        is_fault = kind is InternalError and fault is not None
        if isinstance(kind, type) and issubclass(kind, QuadweirError) and not is_fault:
            ours = kind(message.strip())
            report(ours)
            return ours.exit_code
    if fault is not None:
        report(fault)
        return fault.exit_code
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    first_line = (str(error).strip().splitlines() or [""])[0][:500]
    name = type(error).__name__
    report(
        InternalError(
            f"unexpected {name}{place}" + (f": {first_line}" if first_line else ""),
            hint="Please report this, with what the same command prints under QUADWEIR_DEBUG=1.",
        )
    )
    return InternalError.exit_code


def _excerpt(span: Span) -> str:
    if span.source is None:
        return ""
    path = Path(span.source)
    try:
        if not path.is_file() or path.stat().st_size > _MOST_SOURCE_BYTES:
            return ""
        return excerpt(path.read_text(encoding="utf-8", errors="replace"), span)
    except (OSError, ValueError):
        return ""
