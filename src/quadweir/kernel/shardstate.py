"""The state of a shard as arrays: what each of its parts has, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.answers import AnswerMaker
from quadweir.kernel.arrays import ints
from quadweir.kernel.dataflow import Dataflow, part
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.recompute import Recomputed
from quadweir.kernel.reporting import Reporter
from quadweir.kernel.routing import Router
from quadweir.kernel.window import Leaf


@final
@dataclass(frozen=True, slots=True)
class ShardState:
    """The parts of a shard that have state.

    Attributes:
        dictionary: The numbers of terms.
        dataflow: The operators.
        output: What makes answers.
        reporter: When there are reports.
        recomputed: What windows hold for a query that is recomputed.
        router: The members of a template.
    """

    dictionary: Dictionary
    dataflow: Dataflow
    output: AnswerMaker
    reporter: Reporter
    recomputed: Recomputed | None
    router: Router | None

    def layout(self) -> Arrays:
        """Return what does not depend on streams; see `Shard.layout`."""
        own = self.dataflow.layout()
        if not own:
            return NO_LAYOUT
        found = {f"network.{name}": each for name, each in own.items()}
        return found | {f"dictionary.{name}": e for name, e in self.dictionary.layout().items()}

    def arrays(self, through: int, steps: int, windows: bytes) -> dict[str, NDArray[Any]]:
        """Return the whole state, between two steps.

        Args:
            through: The instant until which all is known.
            steps: How many steps there were.
            windows: The name of what windows hold; see `Shard.windows`.
        """
        found: dict[str, NDArray[Any]] = {
            "shard": np.array([through, self.reporter.tracked, steps, self.reporter.last]),
            "windows": np.frombuffer(windows, dtype=np.uint8),
            "leaves": np.array(
                [self.dataflow.place(leaf) for _, leaf in self.dataflow.leaves], dtype=np.int64
            ),
        }
        found |= {f"network.{name}": each for name, each in self.dataflow.arrays().items()}
        found |= {f"output.{name}": each for name, each in self.output.arrays().items()}
        # Over other static data, windows have to be read without the dictionary's static terms.
        leaves = [
            numbers.ravel()
            for leaf, own in self.held_by_leaves(found)
            for numbers in leaf.terms(own)
        ]
        terms = self.dictionary.arrays(
            np.concatenate([ints(0), *leaves]),
            self.router.held() if self.router is not None else None,
        )
        found |= {f"dictionary.{name}": each for name, each in terms.items()}
        if self.recomputed is not None:
            found |= {f"held.{name}": each for name, each in self.recomputed.arrays().items()}
        if self.router is not None:
            found |= {f"members.{name}": each for name, each in self.router.arrays().items()}
        return found | self.reporter.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned, besides times and reports; see `restore_times`."""
        members = self.router.read() if self.router is not None else None
        self.dictionary.restore(part("dictionary.", arrays))
        if self.router is not None and members is not None:
            self.router.number_again(members, part("members.", arrays))
        self.dataflow.restore(part("network.", arrays))
        if self.router is not None:
            self.router.lengthen()
        self.output.restore(part("output.", arrays))
        if self.recomputed is not None:
            self.recomputed.restore(part("held.", arrays))

    def restore_times(self, arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int]:
        """Take back how far reports have come; return until when all is known, and the steps."""
        through, tracked, steps, last = map(int, arrays["shard"])
        self.reporter.tracked, self.reporter.last = tracked, last
        self.reporter.restore(arrays)
        return through, steps

    def held_by_leaves(self, arrays: Mapping[str, NDArray[Any]]) -> list[tuple[Leaf, Arrays]]:
        """Return for each leaf what it held."""
        return [
            (leaf, part(f"network.operator.{place}.", arrays))
            for (_, leaf), place in zip(self.dataflow.leaves, arrays["leaves"], strict=True)
        ]
