"""What each template of a shared shard costs: its own work, and a share of what it has in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

import numpy as np

from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.containment import Containment
from quadweir.kernel.heads import Head
from quadweir.kernel.relation import Operator


@final
class HeadCosts:
    """The costs of the heads of a shared shard.

    Args:
        heads: The heads by their names; they come and go.
    """

    def __init__(self, heads: Mapping[str, Head]) -> None:
        self._heads = heads
        self._microseconds: dict[str, float] = {}
        self.left = np.zeros((0, 2), dtype=np.int64)
        """Until when common operators hold rows of heads that left, and how long these held them."""

    def leave(self, head: Head, through: int) -> None:
        """Remember a head that leaves at an instant: what is common still has rows for it."""
        length = head.longest_ms
        until = min(through, FOREVER - length) + length
        self.left = np.concatenate((self.left, [[until, length]]))

    def spend(self, work: Containment) -> None:
        """Take the times of the last step."""
        self._microseconds = work.shared(self._weights())

    def _weights(self) -> dict[str, float]:
        """Return what each head pays for what it shares: by the length of its windows.

        What an operator holds is as long as the longest window. So no head pays for more than it
        would hold alone.
        """
        return {name: float(head.longest_ms) for name, head in self._heads.items()}

    def held(
        self,
        readers: Mapping[Operator, Sequence[str]],
        common: Collection[Operator],
        through: int,
    ) -> dict[str, int]:
        """Return how many mappings are remembered for each head.

        Args:
            readers: The heads that each operator works for.
            common: The operators that heads may share.
            through: The instant until which all is known.
        """
        weights = self._weights()
        found = {name: float(head.output.held()) for name, head in self._heads.items()}
        self.left = self.left[self.left[:, 0] > through]
        gone = float(self.left[:, 1].sum())
        for operator, names in readers.items():
            whole = sum(weights[name] for name in names) + (gone if operator in common else 0)
            for name in names:
                found[name] += operator.held() * weights[name] / whole
        return {name: round(each) for name, each in found.items()}

    def microseconds(self) -> dict[str, int]:
        """Return how long the last step took for each head."""
        return {name: round(self._microseconds.get(name, 0)) for name in self._heads}
