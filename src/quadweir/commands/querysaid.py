"""What `quadweir query` says on standard error about what it read and found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from quadweir.errors import SourceError

MOST_NAMED: Final = 5
"""How many bad records and late elements are printed one by one."""


def say_what_is_missing(unmatched: Sequence[str]) -> None:
    """Say why there are no answers, as far as that can be known."""
    for each in unmatched:
        print(f"quadweir: no answers: {each}", file=sys.stderr)
    if not unmatched:
        print(
            "quadweir: no answers, though each pattern matches some statement: nothing passes the joins, "
            "FILTER and HAVING",
            file=sys.stderr,
        )


def doubt_time(earliest: int | None) -> None:
    """Warn if the first event time of the input looks like seconds."""
    from quadweir.times import doubt_of_time

    doubt = doubt_of_time(earliest)
    if doubt is not None:
        print(f"quadweir: warning: {doubt}", file=sys.stderr)


@contextmanager
def opened(output: str) -> Iterator[TextIO]:
    """Open a file for text; `-` is standard output.

    Raises:
        SourceError: it cannot be written.
    """
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with Path(output).open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise SourceError(f"cannot write {output}: {error.strerror}") from None


def summarise(what: str, found: Sequence[str], count: int | None = None) -> None:
    """Print how many there are of something, and the first of them."""
    if not found:
        return
    total = len(found) if count is None else count
    plural = "" if total == 1 else "s"
    first, _, rest = what.partition(" ")
    noun = f"{first}{plural} {rest}" if first != "late" else f"late {rest}{plural}"
    print(f"quadweir: {total} {noun}", file=sys.stderr)
    for each in found[:MOST_NAMED]:
        print(f"  {each}", file=sys.stderr)
    if total > MOST_NAMED:
        print(f"  and {total - MOST_NAMED} more", file=sys.stderr)
