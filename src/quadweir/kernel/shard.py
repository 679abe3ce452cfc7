"""One shard of one query: matches in, answers out, state that can be saved and restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.errors import InternalError, StateError
from quadweir.kernel import state
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER, ints
from quadweir.kernel.arrivals import CHUNK, chunk_of, cuts_of, matches_of, spelled_out
from quadweir.kernel.build import Builder, facts_of, has_layout
from quadweir.kernel.codec import StateKind, read_frame, write_frame
from quadweir.kernel.dataflow import Dataflow, part
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, Recorded
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.outputs import output_of, recomputed_of
from quadweir.kernel.recompute import Recomputed
from quadweir.kernel.relation import Operator, no_change
from quadweir.kernel.reporting import Reporter
from quadweir.kernel.routing import Router
from quadweir.kernel.shardstate import ShardState
from quadweir.kernel.staticrelations import ShardShare, StaticSource, source_of
from quadweir.kernel.stepanswers import CutAnswers, put_together, spelled
from quadweir.kernel.timewindow import TimedLeaf
from quadweir.kernel.window import Leaf
from quadweir.plan.nodes import Match, Recompute, Source
from quadweir.plan.program import Program, program_of
from quadweir.plan.template import TemplateMember


@final
class Shard:
    """The windows, indexes and groups of one stage of a query, or of one shard of it.

    Args:
        program: What it runs.
        static: The static data that the engine holds, or where the relations made of it come from.
        records: Whether `delta` will be called.
        share: What this shard has of static relations that shards divide among them.
    """

    def __init__(
        self,
        program: Program,
        *,
        static: Dataset | StaticSource | None = None,
        records: bool = True,
        share: ShardShare | None = None,
    ) -> None:
        self.program = program
        self.query = query = program.query
        self.records = records
        self.chunk = CHUNK
        """How many changes run through the operators at once, about; answers do not depend on it."""
        source = source_of(query, static)
        layout = source.layout(program, share) if has_layout(program) else NO_LAYOUT
        self.dictionary = Dictionary(part("dictionary.", layout) if layout else None)
        self.variables = program.variables
        self.reported = ints(0)
        """The report instants of the last step, for the next stage."""
        builder = Builder(
            program, source, self.dictionary, layout=part("network.", layout), share=share
        )
        self.dataflow: Dataflow = builder.build()
        self._trackers = [builder.operator(each) for each in program.tracked]
        self._root: Operator | None = None
        self._recomputed: Recomputed | None = None
        self._received = builder.received
        if isinstance(program.root, Recompute):
            self._recomputed, self._output = recomputed_of(
                program.root, source.dataset(), builder.operator, self.dictionary
            )
        else:
            self._root = builder.operator(program.root)
            self._output = output_of(program, self._root, self.dictionary)
            self.dataflow.take_fixed(self._root)
            self.dataflow.lay_out(part("network.", layout))
        self.dataflow.leave_out_fixed(self._root)
        self._reporter = Reporter(
            program,
            self.dataflow.clocks,
            silent_when_empty=program.next_is_silent
            if self._recomputed is None
            else self._recomputed.is_silent_when_empty(),
            only_changes=self._output.only_changes,
        )
        if not layout:
            self.dictionary.grant()
        self._through = ALWAYS
        self._steps = 0
        self._reported = ints(0)
        self._last: Recorded | None = None
        self._router: Router | None = None
        if program.template is not None:
            self._router = Router(
                program,
                len(self.variables),
                self.dictionary,
                [
                    (match.source.window, leaf)
                    for match, leaf in self.dataflow.leaves
                    if isinstance(leaf, TimedLeaf)
                ],
                builder.routes,
            )
            self.change_members(program.template.members, ())
        self._state = ShardState(
            self.dictionary,
            self.dataflow,
            self._output,
            self._reporter,
            self._recomputed,
            self._router,
        )

    @staticmethod
    def of(
        query: ContinuousQuery,
        *,
        static: Dataset | StaticSource | None = None,
        streams: Sequence[str] = (),
        incremental: bool = True,
        records: bool = True,
    ) -> Shard:
        """Make the only shard of a query."""
        program = program_of(query, streams=streams, incremental=incremental)
        if query.default_graph_windows and isinstance(static, Dataset):
            # Patterns that static data does not match are quicker without it (A1).
            facts = facts_of(program, source_of(query, static))
            program = program_of(query, streams=streams, facts=facts, incremental=incremental)
        return Shard(program, static=static, records=records)

    # --- what it is fed by ---

    @property
    def leaves(self) -> tuple[Match, ...]:
        """The matches it needs, by the places of `Events.matches`."""
        return self.program.matches

    @property
    def sources(self) -> tuple[Source, ...]:
        """The windows over streams, by the places of `Events.elements` and `Events.seen`."""
        return self.program.sources

    @property
    def tells_reports(self) -> bool:
        """Whether the report instants are known before the solutions are."""
        return self.program.report.tells_reports

    # --- members of a template ---

    def change_members(self, added: Sequence[TemplateMember], removed: Collection[int]) -> None:
        """Let members of the template come and go; only between two steps.

        Args:
            added: New members. Each sees what is later than its `since`: of what comes from now on,
                and of what windows hold already. What that is, `plan/backfill.py` says.
            removed: The numbers of members that get no more answers. A number that is in `added`
                too is replaced.
        """
        if self._router is None:
            raise InternalError("only the shard of a template has members")
        if self._router.change(added, removed):
            self._catch_up()
        self._reporter.set_lengths(self._router.longest())

    def _catch_up(self) -> None:
        """Give new members what windows hold, as if they had been there when it came."""
        deltas = self.dataflow.advance(self._through)
        place = self.dataflow.place
        assert self._root is not None, "what is recomputed has no classes"
        root = deltas[place(self._root)]
        self._reporter.catch_up([root], [deltas[place(each)] for each in self._trackers])
        self._output.catch_up(root)
        self.dataflow.settle()
        self.dictionary.settle()

    @property
    def since(self) -> int:
        """Elements up to this instant are seen by no member; all, if it has none."""
        return ALWAYS if self._router is None else self._router.since

    # --- running ---

    @property
    def through(self) -> int:
        """The instant until which all is known, as the last step said."""
        return self._through

    def step(self, events: Events, through: int) -> Answers:
        """Take what has arrived, and return the answers that are final.

        Args:
            events: What has arrived. Nothing in it may be as early as the `through` before.
            through: The instant up to which all is known: no element up to it is still to come.
                FOREVER at the end of all streams, so that the windows run empty (E3).
        """
        return put_together(self._run(events, through), self.variables)

    def _run(self, events: Events, through: int, *, spell: bool = True) -> list[CutAnswers]:
        if self._router is not None:
            events = self._router.admitted(events)
        recorded = spelled_out(events, self.dictionary) if self.records else events
        self._last = Recorded(self._steps, recorded, through)
        self._hear(events)
        found = []
        reported = []
        classes = 0 if self._router is None else self._router.classes
        chunk = min(self.chunk, chunk_of(classes))
        for cut in cuts_of(events, chunk, self._through, through):
            found.append(self._advance(cut, admitted=cut, spell=spell))
            reported.append(self._reported)
        found.append(self._advance(through, spell=spell))
        reported.append(self._reported)
        self.reported = np.concatenate(reported)
        self._through = through
        self._steps += 1
        if self._router is not None:
            self._router.merge_classes(self._reporter.last)
        return found

    def _hear(self, events: Events) -> None:
        if self._received is not None and events.changes is not None:
            self._received.hear(events.changes)
        for place, columns in events.matches.items():
            match, leaf = self.dataflow.leaves[place]
            leaf.hear(matches_of(match, columns, self.dictionary))
        for place, elements in events.elements.items():
            clock = self.dataflow.clocks.get(self.sources[place])
            if clock is not None:
                clock.hear(elements)
        self._reporter.hear(events)

    def _advance(self, through: int, *, admitted: int = FOREVER, spell: bool = True) -> CutAnswers:
        deltas = self.dataflow.advance(through, admitted)
        place = self.dataflow.place
        root = deltas[place(self._root)] if self._root is not None else no_change()
        tracked = [deltas[place(each)] for each in self._trackers]
        found = [root]
        if self._recomputed is not None:
            found = [deltas[place(leaf)] for _, leaf in self._recomputed.leaves]
            self._recomputed.take(found)
        reports = self._reporter.advance(found, tracked, through, first=not self._steps)
        self._reported = reports
        rows = self._output.step(root, reports)
        if self._router is not None:
            rows = self._router.routed(rows)
        if self._recomputed is not None:
            self._recomputed.finish()
        answers = spelled(rows, self.dictionary, spell=spell)
        if self._reporter.outlives_changes:
            for _, leaf in self.dataflow.leaves:
                leaf.remember(self._reporter.last)
        self.dataflow.settle()
        self.dictionary.settle()
        return answers

    # --- state ---

    def held(self) -> int:
        """Return how many mappings are remembered, intermediate results included."""
        return self.dataflow.held() + self._output.held()

    def layout(self) -> Arrays:
        """Return what does not depend on streams, before the first step.

        A shard of the same query and static data can take it and need not compute it.
        """
        return self._state.layout()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays, between two steps."""
        return self._state.arrays(self._through, self._steps, self.windows)

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned, in a shard made for the same query and static data."""
        self.restore_times(arrays)
        self._state.restore(arrays)

    def restore_times(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back how far time and reports have come."""
        self._through, self._steps = self._state.restore_times(arrays)

    def held_by_leaves(self, arrays: Mapping[str, NDArray[Any]]) -> list[tuple[Leaf, Arrays]]:
        """Return for each leaf what it held."""
        return self._state.held_by_leaves(arrays)

    @cached_property
    def fingerprint(self) -> bytes:
        """The name of what state depends on: the query, its dataflow and the static rows in it."""
        return state.fingerprint_of(self.program, self.dataflow)

    @cached_property
    def windows(self) -> bytes:
        """The name of what its windows hold, whatever is made of that."""
        return state.windows_of(self.program, self.dataflow)

    def snapshot(self) -> bytes:
        """Return the whole state as bytes; they grow with what is held."""
        return write_frame(StateKind.SNAPSHOT, self.fingerprint, self.arrays())

    def delta(self) -> bytes:
        """Return what the last step changed as bytes; they grow with what arrived in it.

        The bytes hold what the step was given: running it again is cheaper than writing all that
        followed from it, and has the same result.
        """
        if self._last is None or not self.records:
            raise InternalError("there is no step to return the delta of")
        return state.write_delta(self.fingerprint, self._last)

    def restore(self, snapshot: bytes | None, deltas: Sequence[bytes] = ()) -> None:
        """Take the state that another shard of the same query left; no answer comes again.

        Args:
            snapshot: What `snapshot` returned; None to start with nothing.
            deltas: What `delta` returned after each step since then.

        Raises:
            StateError: Bytes are damaged, or belong to another query, release or place.
        """
        self.check_new()
        if snapshot is not None:
            self.restore_arrays(read_frame(StateKind.SNAPSHOT, self.fingerprint, snapshot))
        for each in deltas:
            step = state.read_delta(self.fingerprint, each)
            if step.number != self._steps:
                raise StateError(
                    f"the delta of step {step.number + 1} where that of step {self._steps + 1} "
                    "was to come",
                    hint="Give all deltas since the snapshot, in order.",
                )
            self._run(step.events, step.through, spell=False)

    def begin_after(self, old: Shard, sources: Mapping[Source, Source]) -> None:
        """Go on where a shard of another plan was, without its windows; `sources` as there."""
        self.check_new()
        self._through, self._steps = old._through, old._steps
        self._reporter.take_over(old._reporter, sources, old._through)
        clocks = old.dataflow.clocks
        for source, clock in self.dataflow.clocks.items():
            if sources.get(source) in clocks:
                clock.restore(clocks[sources[source]].arrays())

    def come_again(
        self, held: Iterable[tuple[Leaf, Arrays]], before: Dictionary, admitted: int = FOREVER
    ) -> Answers:
        """Take what leaves held as if it came now; terms have the numbers of `before`."""
        for leaf, own in held:
            for numbers in leaf.terms(own):
                self.dictionary.renumber(numbers, before)
            leaf.hear_again(own)
        self._reporter.start_again(reports_known=self.tells_reports)
        found = self._advance(self._through, admitted=admitted)
        self.reported = self._reported
        return put_together([found], self.variables)

    def check_new(self) -> None:
        """Refuse to replace state that is there."""
        if self._steps:
            raise InternalError("state can only be restored before the first step")
