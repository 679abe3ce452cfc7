"""What the unit tests of the runtime share."""

from __future__ import annotations

from quadweir.plan.matchtests import MatchTest


def wanted(count: int) -> list[MatchTest]:
    """So many tests that send rows by different terms."""
    return [
        MatchTest("urn:s", (None,) * 4, (), (None, 0, 2, "<urn:c>")[at % 4]) for at in range(count)
    ]
