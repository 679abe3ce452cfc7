"""Running the command line in this process."""

from __future__ import annotations

from collections.abc import Sequence

from quadweir import cli


def main(words: Sequence[str]) -> None:
    """Run a command; raise SystemExit only if it ends with another exit code than 0."""
    try:
        cli.main(words)
    except SystemExit as end:
        if end.code not in (0, None):
            raise
