"""The mismatch of LSBench's paper: how much of one engine's output another engine lacks.

The output of E1 is cut into blocks: one for each execution, or one for each answer if the engine
answers at once. Of each block, the answers that E2's remaining output contains are kept. E2's
remaining output starts at the earliest match of the block before. The mismatch is the share of
answers that were not kept.

Section 3.3 of Le-Phuoc et al., *Linked Stream Data Processing Engines: Facts and Figures*, ISWC 2012.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from quadweir.testing.answers import Answer


def mismatch(blocks: Sequence[Sequence[Hashable]], other: Sequence[Hashable]) -> float:
    """The mismatch of an output in blocks against another output, in per cent.

    >>> mismatch([["a"], ["b"]], ["a", "c"])
    50.0
    >>> mismatch([["a"], ["a"], ["a"]], ["a"])
    0.0
    """
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, answer in enumerate(other):
        places[answer].append(place)
    start = kept = total = 0
    for block in blocks:
        matches = []
        for answer in block:
            found = places.get(answer, ())
            at = bisect_left(found, start)
            if at < len(found):
                matches.append(found[at])
        kept += len(matches)
        total += len(block)
        start = min(matches, default=start)
    return 100.0 * (total - kept) / total if total else 0.0


@final
@dataclass(frozen=True, slots=True)
class Agreement:
    """Two outputs compared, both ways and by both partitions, in per cent."""

    size: int
    other_size: int
    eager: float
    eager_back: float
    periodic: float
    periodic_back: float

    @property
    def worst(self) -> float:
        """The largest of the four."""
        return max(self.eager, self.eager_back, self.periodic, self.periodic_back)


def compare(one: Sequence[Answer], other: Sequence[Answer]) -> Agreement:
    """Compare two outputs, answer by answer with report instant, sign and solution.

    Answers of one instant have no order, so both outputs are sorted.
    """
    from quadweir.testing.answers import canonical_answer

    first, second = (
        sorted(
            ((each.t, str(each)) for each in map(canonical_answer, answers)),
        )
        for answers in (one, other)
    )
    return Agreement(
        len(first),
        len(second),
        mismatch([[each] for each in first], second),
        mismatch([[each] for each in second], first),
        mismatch(_executions(first), second),
        mismatch(_executions(second), first),
    )


def _executions(answers: Sequence[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    return [list(block) for _, block in groupby(answers, key=lambda answer: answer[0])]
