"""Several templates in one dataflow: equal sub-plans run once, whatever stands above them.

Each template is a *head*: its own operators above the common ones, its reports, its output and its
router. Heads come and go while the dataflow runs. A head that comes reads common operators that hold
more than its members see: its router drops what is not later than the members' `since`, and an
operator of its own that joins begins with the rows that are there.

A head that fails goes alone: the step goes on without its operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from quadweir.errors import InternalError, StateError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER, ints
from quadweir.kernel.arrivals import chunk_of, cuts_of
from quadweir.kernel.build import Builder
from quadweir.kernel.codec import FORMAT_VERSION, StateKind, fingerprint, read_frame, write_frame
from quadweir.kernel.commonoperators import CommonOperators
from quadweir.kernel.containment import Containment
from quadweir.kernel.dataflow import part
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.events import Events
from quadweir.kernel.headcosts import HeadCosts
from quadweir.kernel.heads import Head, HeadSpec, Votes
from quadweir.kernel.layout import NO_LAYOUT
from quadweir.kernel.places import Places
from quadweir.kernel.relation import Operator
from quadweir.kernel.stateless import Rename
from quadweir.kernel.staticrelations import ShardShare, source_of
from quadweir.kernel.stepanswers import CutAnswers, put_together, spelled
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Leaf
from quadweir.plan.common import can_share
from quadweir.plan.nodes import Match, Source
from quadweir.plan.template import TemplateMember

_FINGERPRINT: Final = fingerprint("shared shard", str(FORMAT_VERSION))


@final
class SharedShard:
    """The windows, indexes and groups of several templates.

    Args:
        share: What this shard has of static relations that shards divide among them.
    """

    def __init__(self, *, share: ShardShare | None = None) -> None:
        self.dictionary = Dictionary()
        self._share = share
        self._common = CommonOperators()
        self._dataflow = self._common.dataflow
        self._heads: dict[str, Head] = {}
        self._votes: Votes = {}
        self._through = ALWAYS
        self._steps = 0
        self._costs = HeadCosts(self._heads)
        self._readers: dict[Operator, list[str]] = {}
        self.places = Places(())
        self.failed: dict[str, Exception] = {}
        """The templates that failed in the last step, and so are there no more."""

    # --- heads ---

    def add(self, head: HeadSpec) -> None:
        """Add a template, or nothing of it if that fails; only between two steps."""
        new = self._add(head)
        try:
            self.change_members(head.name, head.members, ())
            if self._steps:
                self._dataflow.begin(set(new))
                self.dictionary.settle()
        except Exception:
            self.remove(head.name)
            raise

    def _add(self, given: HeadSpec) -> list[Operator]:
        """Make the operators of a template, and return those that are new."""
        name, program, _, static, key = given
        if name in self._heads or not can_share(program):
            raise InternalError(f"the template {name} cannot be added")
        before = [operator for operator, _ in self._dataflow.operators]
        mark = self._common.mark()
        scope = DictionaryScope(self.dictionary)
        builder = Builder(
            program,
            source_of(program.query, static),
            self.dictionary,
            layout=NO_LAYOUT,
            share=self._share,
            common=self._common,
            scope=scope,
            key=key,
        )
        try:
            builder.build()
            head = Head(name, program, builder, self.dictionary, scope, self._votes)
            first = len(before)
            self._dataflow.take_fixed(head.root, first)
            self._dataflow.lay_out(NO_LAYOUT, first)
            self._dataflow.leave_out_fixed(head.root)
        except Exception:
            self._common.undo(mark)
            scope.let_go()
            self._dataflow.keep(set(before))
            self._forget_votes(name)
            raise
        common = self._common.operators()
        new = [each for each, _ in self._dataflow.operators[first:]]
        head.own = [each for each in new if each not in common]
        self._heads[name] = head
        self._changed()
        return new

    def remove(self, name: str) -> None:
        """Take a template out, and all operators that it was the last to use."""
        head = self._heads.pop(name)
        self._costs.leave(head, self._through)
        head.router.change((), head.router.numbers())
        head.scope.let_go()
        self._common.release(head.used)
        self.dictionary.settle()
        kept = self._common.operators()
        kept.update(each for other in self._heads.values() for each in other.own)
        self._dataflow.keep(kept)
        self._forget_votes(name)
        self._changed()

    def _forget_votes(self, name: str) -> None:
        """Let windows be as long as the other heads have them."""
        kept = {operator for operator, _ in self._dataflow.operators}
        for leaf, votes in list(self._votes.items()):
            votes.pop(name, None)
            if leaf not in kept:
                del self._votes[leaf]
            elif votes and isinstance(leaf, TimedLeaf):
                leaf.set_length(max(votes.values()))

    def _changed(self) -> None:
        """Find again what heads have in common."""
        self.places = Places(self._heads.values())
        self._readers = {operator: [] for operator, _ in self._dataflow.operators}
        for name, head in self._heads.items():
            reads = {head.root, *head.trackers}
            for operator, _ in reversed(self._dataflow.operators):
                if operator in reads:
                    reads.update(self._dataflow.inputs(operator))
                    self._readers[operator].append(name)

    def change_members(
        self, name: str, added: Sequence[TemplateMember], removed: Collection[int]
    ) -> None:
        """Let members of a template come and go; see `Shard.change_members`."""
        head = self._heads[name]
        if head.router.change(added, removed):
            deltas, place = self._dataflow.advance(self._through), self._dataflow.place
            head.catch_up(deltas[place(head.root)], [deltas[place(e)] for e in head.trackers])
            self._dataflow.settle()
            self.dictionary.settle()
        head.reporter.set_lengths(head.router.longest())

    @property
    def leaves(self) -> tuple[Match, ...]:
        """What it needs the matches of, by the places of `Events.matches`; heads change it."""
        return self.places.leaves

    @property
    def sources(self) -> tuple[Source, ...]:
        """The windows over streams, by the places of `Events.seen`; heads change it."""
        return self.places.sources

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the templates."""
        return tuple(self._heads)

    @property
    def common(self) -> int:
        """How many common operators there are."""
        return len(self._common)

    @property
    def since(self) -> int:
        """Elements up to this instant are seen by no member of any template."""
        return min((head.router.since for head in self._heads.values()), default=FOREVER)

    # --- running ---

    def step(self, events: Events, through: int) -> dict[str, Answers]:
        """Take what has arrived, and return the answers of each template that are final.

        A template that fails has none, and goes: see `failed`.

        Args:
            events: What has arrived, by the places of `leaves` and `sources`.
            through: The instant until which all is known; see `Shard.step`.
        """
        events = self.places.admitted(events)
        self.places.hear(events, self.dictionary)
        found: dict[str, list[CutAnswers]] = {name: [] for name in self._heads}
        work = Containment(self._dataflow, self._readers)
        classes = max((head.router.classes for head in self._heads.values()), default=0)
        for cut in (*cuts_of(events, chunk_of(classes), self._through, through), None):
            self._advance(through if cut is None else cut, cut, found, work)
        self._through = through
        self._steps += 1
        self.failed = work.failed
        for name in work.failed:
            self.remove(name)
        for head in self._heads.values():
            head.router.merge_classes(head.reporter.last)
        self._costs.spend(work)
        return {
            name: put_together(found[name], head.variables) for name, head in self._heads.items()
        }

    def _advance(
        self,
        through: int,
        cut: int | None,
        found: dict[str, list[CutAnswers]],
        work: Containment,
    ) -> None:
        deltas = work.advance(through, FOREVER if cut is None else cut)
        place = self._dataflow.place
        for name, head in self._heads.items():
            with work.of(name) as is_well:
                if not is_well:
                    continue
                root = deltas[place(head.root)]
                tracked = [deltas[place(each)] for each in head.trackers]
                reports = head.reporter.advance([root], tracked, through, first=head.is_new)
                head.is_new = False
                rows = head.router.routed(head.output.step(root, reports))
                found[name].append(spelled(rows, self.dictionary))
        work.settle()
        for _, scope in self._scopes():
            scope.settle()
        self.dictionary.settle()

    # --- what heads cost ---

    def held(self) -> dict[str, int]:
        """Return how many mappings are remembered for each template: its share of what is common."""
        return self._costs.held(self._readers, self._common.operators(), self._through)

    def microseconds(self) -> dict[str, int]:
        """Return how long the last step took for each template."""
        return self._costs.microseconds()

    # --- state ---

    def _names(self) -> dict[Operator, str]:
        """Name all operators by what they do and whose they are."""
        parts = [(name, own) for name, own, _ in self._common.named()]
        parts += [(name, head.own) for name, head in self._heads.items()]
        # Whether other names are needed depends on who came first.
        return {
            operator: f"{name}.{number}"
            for name, own in parts
            for number, operator in enumerate(e for e in own if not isinstance(e, Rename))
        }

    def _scopes(self) -> Iterator[tuple[str, DictionaryScope]]:
        for name, _, scope in self._common.named():
            yield name, scope
        for name, head in self._heads.items():
            yield name, head.scope

    @property
    def _digest(self) -> bytes:
        """Names what is held: the templates, and the operators that each of them has."""
        heads = [f"{name} {head.digest.hex()}" for name, head in sorted(self._heads.items())]
        common = sorted(name for name, _, _ in self._common.named())
        return fingerprint(*heads, *common)

    def _written(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "shard", np.array([self._through, self._steps], dtype=np.int64)
        yield "left", self._costs.left
        yield "digest", np.frombuffer(self._digest, dtype=np.uint8)
        members = np.concatenate([ints(0), *(e.router.held() for e in self._heads.values())])
        for key, array in self.dictionary.arrays(released=members).items():
            yield f"dictionary/{key}", array
        for name, scope in self._scopes():
            yield f"held/{name}", scope.held()
        for operator, name in self._names().items():
            digest = operator.digest or b""
            yield f"operator/{name}/digest", np.frombuffer(digest, dtype=np.uint8)
            for key, array in operator.arrays().items():
                yield f"operator/{name}/{key}", array
        for name, head in self._heads.items():
            for key, array in head.arrays().items():
                yield f"head/{name}/{key}", array

    def snapshot(self) -> bytes:
        """Return the whole state as bytes; they grow with what is held."""
        return write_frame(StateKind.SNAPSHOT, _FINGERPRINT, dict(self._written()))

    def restore(self, heads: Sequence[HeadSpec], snapshot: bytes) -> None:
        """Take the state that another shard with the same templates and members left.

        Raises:
            StateError: Bytes are damaged, or belong to another release or other static data.
        """
        if self._steps or self._heads:
            raise InternalError("state can only be restored in a new shard")
        arrays = read_frame(StateKind.SNAPSHOT, _FINGERPRINT, snapshot)
        # Static relations and constants get their numbers from the dictionary that was.
        self.dictionary.restore(part("dictionary/", arrays))
        for each in heads:
            self._add(each)
            own = part(f"head/{each.name}/members/", arrays)
            self._heads[each.name].router.restore(each.members, own)
        if self._digest != arrays["digest"].tobytes():
            raise StateError(
                "a snapshot of other templates",
                hint="It was written by another release; start with a new checkpoint.",
            )
        for name, scope in self._scopes():
            # What its operators hold now, they held then.
            scope.let_go()
            scope.take(np.asarray(arrays[f"held/{name}"]).reshape(-1, 2))
        for name, head in self._heads.items():
            head.restore(part(f"head/{name}/", arrays))
        self._restore_operators(arrays)
        self._costs.left = np.asarray(arrays["left"]).reshape(-1, 2)
        self._through, self._steps = (int(each) for each in arrays["shard"])

    def take_over(self, heads: Sequence[HeadSpec], snapshot: bytes) -> None:
        """Take the state of a shard of the same templates over other static data; see `takeover.py`.

        Raises:
            StateError: Bytes are damaged, or belong to another release or other templates.
        """
        arrays = read_frame(StateKind.SNAPSHOT, _FINGERPRINT, snapshot)
        for each in heads:
            self.add(each)
        self._through, self._steps = (int(each) for each in arrays["shard"])
        before, names = Dictionary(), self._names()
        before.restore(part("dictionary/", arrays))
        for leaf in (each for each, _ in self._dataflow.operators if isinstance(each, Leaf)):
            own = part(f"operator/{names[leaf]}/", arrays)
            if not own:
                raise StateError("a snapshot of other windows")
            for numbers in leaf.terms(own):
                self.dictionary.renumber(numbers, before)
            leaf.hear_again(own)
        for name, head in self._heads.items():
            head.start_again(part(f"head/{name}/", arrays))
        work = Containment(self._dataflow, self._readers)
        # Nobody gets these answers again.
        self._advance(self._through, None, {name: [] for name in self._heads}, work)
        for error in work.failed.values():
            raise error

    def _restore_operators(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        names = self._names()
        for operator, _ in self._dataflow.operators:
            if operator not in names:
                continue
            own = part(f"operator/{names[operator]}/", arrays)
            if own["digest"].tobytes() != (operator.digest or b""):
                raise StateError("a snapshot over other static data")
            operator.restore(own)
        for head in self._heads.values():
            head.router.lengthen()
