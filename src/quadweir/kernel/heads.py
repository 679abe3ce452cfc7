"""The heads of a shared shard: what each template has above the operators that several share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.render import render
from quadweir.kernel.answers import AnswerMaker
from quadweir.kernel.build import Builder
from quadweir.kernel.codec import fingerprint
from quadweir.kernel.dataflow import part
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.outputs import output_of
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.reporting import Reporter
from quadweir.kernel.routing import Router
from quadweir.kernel.stateless import Rename
from quadweir.kernel.staticrelations import StaticSource
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Leaf
from quadweir.plan.program import Program
from quadweir.plan.template import TemplateMember
from quadweir.terms import Variable

Votes: TypeAlias = dict[Leaf, dict[str, int]]


class HeadSpec(NamedTuple):
    """A template of a shared shard.

    Attributes:
        name: names it in answers and in the state.
        program: what it runs; see `can_share`.
        members: its members.
        static: the static data that the engine holds, or where the relations made of it come from.
        key: the variable by which its rows are sharded.
    """

    name: str
    program: Program
    members: Sequence[TemplateMember] = ()
    static: Dataset | StaticSource | None = None
    key: Variable | None = None


@dataclass(frozen=True)
class _Vote:
    """The length that one head needs of a window; the longest of all counts."""

    head: str
    leaf: TimedLeaf
    votes: dict[str, int]

    def set_length(self, length_ms: int) -> None:
        self.votes[self.head] = length_ms
        self.leaf.set_length(max(self.votes.values()))


@final
class Head:
    """One template: what it reads, what is its own, and what makes its answers."""

    def __init__(
        self,
        name: str,
        program: Program,
        builder: Builder,
        whole: Dictionary,
        dictionary: DictionaryScope,
        votes: Votes,
    ) -> None:
        self.name = name
        self.scope = dictionary
        self.program = program
        self.used = tuple(builder.used)
        self.root = builder.operator(program.root)
        self.trackers = [builder.operator(each) for each in program.tracked]
        self.leaves = [_leaf(builder.leaf(each)) for each in program.windows]
        self.output: AnswerMaker = output_of(program, self.root, dictionary)
        self.reporter = Reporter(
            program,
            {},
            silent_when_empty=program.next_is_silent,
            only_changes=self.output.only_changes,
        )
        self.variables = program.variables
        lengths = [
            (window.match.source.window, _Vote(name, leaf, votes.setdefault(leaf, {})))
            for window, leaf in zip(program.windows, self.leaves, strict=True)
            if isinstance(leaf, TimedLeaf)
        ]
        # What members hold is not saved, so it is no part of the scope.
        self.router = Router(program, len(self.variables), whole, lengths, builder.routes)
        self.own: list[Operator] = []
        self.is_new = True

    def catch_up(self, root: Delta, tracked: list[Delta]) -> None:
        """Take what new members see that is there already; no report shows it."""
        self.reporter.catch_up([root], tracked)
        self.output.catch_up(root)

    @property
    def longest_ms(self) -> int:
        """The length of its longest window, in milliseconds."""
        return max(self.router.longest().values(), default=1)

    @property
    def digest(self) -> bytes:
        """Names what its state refers to: the query, and the operators of its own."""
        # Whether variables have to be renamed, and their order, depends on who came first.
        own = [
            f"{type(each).__name__} {sorted(map(str, each.variables))}"
            for each in self.own
            if not isinstance(each, Rename)
        ]
        return fingerprint(render(replace(self.program.query, name=None)), *own)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is its own besides operators, for a snapshot."""
        reporter = self.reporter
        numbers = [reporter.tracked, reporter.last, self.is_new]
        parts = {
            "reporter": reporter.arrays(),
            "output": self.output.arrays(),
            "members": self.router.arrays(),
        }
        found = {f"{kind}/{key}": e for kind, own in parts.items() for key, e in own.items()}
        return {"numbers": np.array(numbers, dtype=np.int64), **found}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned; members were restored before."""
        reporter = self.reporter
        reporter.set_lengths(self.router.longest())
        tracked, last, is_new = (int(each) for each in arrays["numbers"])
        reporter.tracked, reporter.last, self.is_new = tracked, last, bool(is_new)
        reporter.restore(part("reporter/", arrays))
        self.output.restore(part("output/", arrays))

    def start_again(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Prepare for a step in which what windows hold comes once more.

        Args:
            arrays: What `arrays` returned over other static data.
        """
        self.router.lengthen()
        reporter = self.reporter
        reporter.set_lengths(self.router.longest())
        reporter.tracked, reporter.last, is_new = (int(each) for each in arrays["numbers"])
        self.is_new = bool(is_new)
        reporter.restore(part("reporter/", arrays))
        reporter.start_again(reports_known=self.program.report.tells_reports)


def _leaf(operator: Operator) -> Leaf:
    assert isinstance(operator, Leaf)
    return operator
