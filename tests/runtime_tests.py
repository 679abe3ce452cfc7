"""What the unit tests of the runtime share."""

from __future__ import annotations

from quadweir.plan.wanted import Wanted


def wanted(count: int) -> list[Wanted]:
    """So many tests that send rows by different terms."""
    return [
        Wanted("urn:s", (None,) * 4, (), (None, 0, 2, "<urn:c>")[at % 4]) for at in range(count)
    ]
