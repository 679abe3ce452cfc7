"""The heads of a shared shard: what each template has above the operators that several share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from quadweir.kernel.answers import AnswerMaker
from quadweir.kernel.build import Builder
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.outputs import output_of
from quadweir.kernel.relation import Operator
from quadweir.kernel.reporting import Reporter
from quadweir.kernel.routing import Router
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Leaf
from quadweir.plan.nodes import StaticRelation, Union
from quadweir.plan.program import Program


def can_share(program: Program) -> bool:
    """Whether a program may be a head of a shared shard: its members may join at any instant."""
    return (
        program.template is not None
        and not program.template.one_since
        and program.why_not is None
        and not program.not_shared
        and not any(
            isinstance(each, Union) and any(isinstance(one, StaticRelation) for one in each.inputs)
            for each in program.nodes
        )
    )


Votes: TypeAlias = dict[Leaf, dict[str, int]]


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


def _leaf(operator: Operator) -> Leaf:
    assert isinstance(operator, Leaf)
    return operator
