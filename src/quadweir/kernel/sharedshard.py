"""Several templates in one dataflow: equal sub-plans run once, whatever stands above them.

Each template is a *head*: its own operators above the common ones, its reports, its output and its
router. Heads come and go while the dataflow runs. A head that comes reads common operators that hold
more than its members see: its router drops what is not later than the members' `since`, and an
operator of its own that joins begins with the rows that are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.errors import InternalError, StateError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER, ints
from quadweir.kernel.arrivals import chunk_of, cuts_of, spelled_out
from quadweir.kernel.build import Builder
from quadweir.kernel.codec import FORMAT_VERSION, StateKind, fingerprint, read_frame, write_frame
from quadweir.kernel.commonoperators import CommonOperators
from quadweir.kernel.dataflow import part
from quadweir.kernel.dictionary import Dictionary, DictionaryScope
from quadweir.kernel.events import Events, Recorded
from quadweir.kernel.fan import Fan
from quadweir.kernel.heads import Head, Votes, can_share
from quadweir.kernel.layout import NO_LAYOUT
from quadweir.kernel.places import Places
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.route import Route
from quadweir.kernel.sharedstate import read_shared_delta, write_shared_delta
from quadweir.kernel.stateless import Rename
from quadweir.kernel.staticrelations import Loaded, ShardShare, StaticSource
from quadweir.kernel.stepanswers import CutAnswers, put_together, spelled
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.plan.nodes import Match, Source
from quadweir.plan.program import Program
from quadweir.plan.template import TemplateMember


@final
class SharedShard:
    """The windows, indexes and groups of several templates.

    Args:
        static: The static data that the engine holds, or where the relations made of it come from.
        records: Whether `delta` will be called.
        share: What this shard has of static relations that shards divide among them.
    """

    def __init__(
        self,
        *,
        static: Dataset | StaticSource | None = None,
        records: bool = True,
        share: ShardShare | None = None,
    ) -> None:
        self.records = records
        self.dictionary = Dictionary()
        self._static = static
        self._share = share
        self._common = CommonOperators()
        self._dataflow = self._common.dataflow
        self._heads: dict[str, Head] = {}
        self._votes: Votes = {}
        self._through = ALWAYS
        self._steps = 0
        self._last: tuple[Recorded, list[str]] | None = None
        self.places = Places(())

    # --- heads ---

    def add(self, name: str, program: Program, members: Sequence[TemplateMember] = ()) -> None:
        """Add a template; only between two steps.

        Args:
            name: Names it in answers and in the state, such as the name of its shape.
            program: What it runs; see `can_share`.
            members: Its first members.
        """
        new = self._add(name, program)
        head = self._heads[name]
        own = program.template.members if program.template is not None else ()
        head.router.change((*own, *members), ())
        head.reporter.set_lengths(head.router.longest())
        if self._steps:
            self._begin(set(new))

    def _add(self, name: str, program: Program) -> list[Operator]:
        """Make the operators of a template, and return those that are new."""
        if name in self._heads or not can_share(program):
            raise InternalError(f"the template {name} cannot be added")
        first = len(self._dataflow.operators)
        source: StaticSource = (
            Loaded(static_dataset(program.query, self._static))
            if self._static is None or isinstance(self._static, Dataset)
            else self._static
        )
        scope = DictionaryScope(self.dictionary)
        builder = Builder(
            program,
            source,
            self.dictionary,
            layout=NO_LAYOUT,
            share=self._share,
            common=self._common,
            scope=scope,
        )
        builder.build()
        head = Head(name, program, builder, self.dictionary, scope, self._votes)
        self._dataflow.take_fixed(head.root, first)
        self._dataflow.lay_out(NO_LAYOUT, first)
        self._dataflow.leave_out_fixed(head.root)
        common = self._common.operators()
        new = [each for each, _ in self._dataflow.operators[first:]]
        head.own = [each for each in new if each not in common]
        self._heads[name] = head
        self.places = Places(self._heads.values())
        return new

    def remove(self, name: str) -> None:
        """Take a template out, and all operators that it was the last to use."""
        head = self._heads.pop(name)
        head.router.change((), head.router.numbers())
        head.scope.let_go()
        self._common.release(head.used)
        self.dictionary.settle()
        kept = self._common.operators()
        kept.update(each for other in self._heads.values() for each in other.own)
        self._dataflow.keep(kept)
        for leaf, votes in list(self._votes.items()):
            votes.pop(name, None)
            if leaf not in kept:
                del self._votes[leaf]
            elif votes and isinstance(leaf, TimedLeaf):
                leaf.set_length(max(votes.values()))
        self.places = Places(self._heads.values())

    def change_members(
        self, name: str, added: Sequence[TemplateMember], removed: Collection[int]
    ) -> None:
        """Let members of a template come and go; see `Shard.change_members`."""
        head = self._heads[name]
        head.router.change(added, removed)
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

    def _begin(self, new: set[Operator]) -> None:
        """Give new operators the rows that are there.

        What they make of these is older than all members that read it.
        """
        found: dict[Operator, Delta] = {}
        for operator, _ in self._dataflow.operators:
            if operator not in new:
                continue
            found[operator] = no_change()
            if isinstance(operator, Route | Fan):
                continue  # they look at rows that come, and nothing later than `since` is there
            inputs = [
                found[each] if each in new else each.present()
                for each in self._dataflow.inputs(operator)
            ]
            if any(len(each.t) for each in inputs):
                found[operator] = operator.step(inputs)
        for operator in new:
            operator.settle()
        self.dictionary.settle()

    # --- running ---

    @property
    def through(self) -> int:
        """The instant until which all is known, as the last step said."""
        return self._through

    def step(self, events: Events, through: int) -> dict[str, Answers]:
        """Take what has arrived, and return the answers of each template that are final.

        Args:
            events: What has arrived, by the places of `leaves` and `sources`.
            through: The instant until which all is known; see `Shard.step`.
        """
        found = self._run(events, through)
        return {
            name: put_together(found[name], head.variables) for name, head in self._heads.items()
        }

    def _run(
        self, events: Events, through: int, *, spell: bool = True
    ) -> dict[str, list[CutAnswers]]:
        events = self.places.admitted(events)
        recorded = spelled_out(events, self.dictionary) if self.records else events
        names = self._names()
        self._last = (
            Recorded(self._steps, recorded, through),
            [names[each] for each in self.places.holders],
        )
        self.places.hear(events, self.dictionary)
        found: dict[str, list[CutAnswers]] = {name: [] for name in self._heads}
        classes = max((head.router.classes for head in self._heads.values()), default=0)
        for cut in (*cuts_of(events, chunk_of(classes), self._through, through), None):
            self._advance(through if cut is None else cut, cut, found, spell=spell)
        self._through = through
        self._steps += 1
        for head in self._heads.values():
            head.router.merge_classes(head.reporter.last)
        return found

    def _advance(
        self,
        through: int,
        cut: int | None,
        found: dict[str, list[CutAnswers]],
        *,
        spell: bool,
    ) -> None:
        deltas = self._dataflow.advance(through, FOREVER if cut is None else cut)
        place = self._dataflow.place
        for name, head in self._heads.items():
            root = deltas[place(head.root)]
            tracked = [deltas[place(each)] for each in head.trackers]
            reports = head.reporter.advance([root], tracked, through, first=head.is_new)
            head.is_new = False
            rows = head.router.routed(head.output.step(root, reports))
            found[name].append(spelled(rows, self.dictionary, spell=spell))
        self._dataflow.settle()
        self.dictionary.settle()

    # --- state ---

    def held(self) -> int:
        """Return how many mappings are remembered, intermediate results included."""
        return self._dataflow.held() + sum(each.output.held() for each in self._heads.values())

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
    def fingerprint(self) -> bytes:
        """The name of what all such shards have in common."""
        return fingerprint("shared shard", str(FORMAT_VERSION))

    def _written(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "shard", np.array([self._through, self._steps], dtype=np.int64)
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
            reporter = head.reporter
            numbers = [reporter.tracked, reporter.last, head.is_new]
            yield f"head/{name}/numbers", np.array(numbers, dtype=np.int64)
            for key, array in reporter.arrays().items():
                yield f"head/{name}/reporter/{key}", array
            for key, array in head.output.arrays().items():
                yield f"head/{name}/output/{key}", array
            for key, array in head.router.arrays().items():
                yield f"head/{name}/members/{key}", array

    def snapshot(self) -> bytes:
        """Return the whole state as bytes; they grow with what is held."""
        return write_frame(StateKind.SNAPSHOT, self.fingerprint, dict(self._written()))

    def delta(self) -> bytes:
        """Return what the last step changed as bytes; they grow with what arrived in it."""
        if self._last is None or not self.records:
            raise InternalError("there is no step to return the delta of")
        step, names = self._last
        return write_shared_delta(self.fingerprint, step, names, self.places.sources)

    def restore(
        self,
        heads: Sequence[tuple[str, Program, Sequence[TemplateMember]]],
        snapshot: bytes | None,
        deltas: Sequence[bytes] = (),
    ) -> None:
        """Take the state that another shard left, which may have had other templates and members.

        Templates that it did not have begin with what is there.

        Args:
            heads: The templates of now with all members, as `add` takes them.
            snapshot: What `snapshot` returned; None to start with nothing.
            deltas: What `delta` returned after each step since then.

        Raises:
            StateError: Bytes are damaged, or belong to another release or other static data.
        """
        if self._steps or self._heads:
            raise InternalError("state can only be restored in a new shard")
        if snapshot is None:
            for name, program, members in heads:
                self.add(name, program, members)
        else:
            self._restore(heads, read_frame(StateKind.SNAPSHOT, self.fingerprint, snapshot))
        for each in deltas:
            step, names, sources = read_shared_delta(self.fingerprint, each)
            if step.number < self._steps:
                raise StateError("a delta of a step that was taken already")
            self._steps = step.number
            events = self.places.placed(step.events, names, sources, self._names())
            self._run(events, step.through, spell=False)

    def _restore(
        self,
        heads: Sequence[tuple[str, Program, Sequence[TemplateMember]]],
        arrays: Mapping[str, NDArray[Any]],
    ) -> None:
        # Static relations and constants get their numbers from the dictionary that was.
        self.dictionary.restore(part("dictionary/", arrays))
        for name, program, members in heads:
            self._add(name, program)
            self._heads[name].router.restore(members, part(f"head/{name}/members/", arrays))
        scopes = dict(self._scopes())
        for name, held in part("held/", arrays).items():
            # What its operators hold now, they held then.
            scope = scopes.get(name) or DictionaryScope(self.dictionary)
            scope.let_go()
            scope.take(np.asarray(held).reshape(-1, 2))
            if name not in scopes:
                scope.let_go()  # nobody is left who needs what it held
        for name, head in self._heads.items():
            head.reporter.set_lengths(head.router.longest())
            own = part(f"head/{name}/", arrays)
            if own:
                tracked, last, is_new = (int(each) for each in own["numbers"])
                head.reporter.tracked, head.reporter.last = tracked, last
                head.is_new = bool(is_new)
                head.reporter.restore(part("reporter/", own))
                head.output.restore(part("output/", own))
        self._begin(self._restore_operators(arrays))
        self._through, self._steps = (int(each) for each in arrays["shard"])

    def _restore_operators(self, arrays: Mapping[str, NDArray[Any]]) -> set[Operator]:
        """Give operators their state, and return those that have none."""
        names = self._names()
        new = set()
        for operator, _ in self._dataflow.operators:
            own = part(f"operator/{names[operator]}/", arrays) if operator in names else {}
            if operator in names and not own:
                new.add(operator)
            elif own:
                if own["digest"].tobytes() != (operator.digest or b""):
                    raise StateError("a snapshot over other static data")
                operator.restore(own)
        for head in self._heads.values():
            head.router.lengthen()
        return new
