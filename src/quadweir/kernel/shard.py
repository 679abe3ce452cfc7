"""One shard of one query: matches in, answers out, state that can be saved and brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import static_dataset
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.errors import InternalError, StateError
from quadweir.kernel import state
from quadweir.kernel.answers import Answers, Differences, Rows, no_rows
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.build import Builder, facts_of, has_layout
from quadweir.kernel.codec import Kind, read_frame, write_frame, written_for
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns, Recorded
from quadweir.kernel.fixed import Loaded, Share, StaticSource
from quadweir.kernel.instants import Closes
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.network import Network, part
from quadweir.kernel.outputs import output_of, recomputed_of
from quadweir.kernel.recompute import Recomputed
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.routing import Router
from quadweir.kernel.spellings import ZERO
from quadweir.kernel.window import Leaf, Matches
from quadweir.plan.nodes import Match, Recompute, Source
from quadweir.plan.program import Program, program_of

# How many changes run through the operators at once: enough to make the way of one cheap, few
# enough that what they touch stays in the processor's caches.
CHUNK: Final = 1 << 16


@final
class Shard:
    """The windows, indexes and groups of one stage of a query, or of one shard of it.

    Args:
        program: What it runs.
        static: The static data that the engine holds, or where the relations made of it come from.
        records: False if nobody will ask for `delta`.
        share: What this shard has of static relations that shards divide among them.
    """

    def __init__(
        self,
        program: Program,
        *,
        static: Dataset | StaticSource | None = None,
        records: bool = True,
        share: Share | None = None,
    ) -> None:
        self.program = program
        self.query = query = program.query
        self.records = records
        self.chunk = CHUNK
        """How many changes run through the operators at once, about; answers do not depend on it."""
        source: StaticSource = (
            Loaded(static_dataset(query, static))
            if static is None or isinstance(static, Dataset)
            else static
        )
        layout = source.layout(program, share) if has_layout(program) else NO_LAYOUT
        self.dictionary = Dictionary(part("dictionary.", layout) if layout else None)
        self.variables = program.variables
        self.reported = ints(0)
        """The report instants of the last step; what the next stage has to be told."""
        builder = Builder(
            program, source, self.dictionary, layout=part("network.", layout), share=share
        )
        self.network: Network = builder.build()
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
            self.network.take_fixed(self._root)
            self.network.lay_out(part("network.", layout))
        self.network.leave_out_fixed(self._root)
        self._closes = (
            Closes(query, program.sources, self.network.clocks)
            if program.report.on_close and program.received is None
            else None
        )
        if not layout:
            self.dictionary.grant()
        self._tracked = 0  # rows in all windows, or solutions where empty reports count
        self._through = ALWAYS
        self._steps = 0
        self._told: Ints | None = None
        self._reported = ints(0)
        self._report = ALWAYS  # the last one
        self._last: Recorded | None = None
        self._router = (
            Router(program, len(self.variables), self.dictionary)
            if program.template is not None
            else None
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
            facts = facts_of(program, Loaded(static_dataset(query, static)))
            program = program_of(query, streams=streams, facts=facts, incremental=incremental)
        return Shard(program, static=static, records=records)

    # --- what it is fed by ---

    @property
    def leaves(self) -> tuple[Match, ...]:
        """What it wants to hear of, by the places of `Events.matches`."""
        return self.program.matches

    @property
    def sources(self) -> tuple[Source, ...]:
        """The windows over streams, by the places of `Events.elements` and `Events.seen`."""
        return self.program.sources

    @property
    def tells_reports(self) -> bool:
        """Whether the report instants are known before the solutions are."""
        return self.program.report.tells_reports

    # --- running ---

    @property
    def through(self) -> int:
        """The instant until which all is known, as the last step said."""
        return self._through

    def step(self, events: Events, through: int) -> Answers:
        """Take what has arrived, and give the answers that are final.

        Args:
            events: What has arrived. Nothing in it may be as early as the `through` before.
            through: The instant until which all is known: no element until then is still to come.
                FOREVER at the end of all streams, to have the windows run empty (E3).
        """
        found = self._run(events, through)
        return self._spelled(found)

    def _run(
        self, events: Events, through: int, *, spell: bool = True
    ) -> list[tuple[Rows, tuple[pa.Array, ...]]]:
        if self._router is not None:
            events = self._router.admitted(events)
        self._last = Recorded(self._steps, self._spelled_out(events), through)
        self._hear(events)
        self._told = events.changes.reports if events.changes is not None else None
        found = []
        reported = []
        for cut in self._cuts(events, through):
            found.append(self._advance(cut, admitted=cut, spell=spell))
            reported.append(self._reported)
        found.append(self._advance(through, spell=spell))
        reported.append(self._reported)
        self.reported = np.concatenate(reported)
        self._through = through
        self._steps += 1
        return found

    def _spelled_out(self, events: Events) -> Events:
        """Turn the numbers of terms into spellings: a number means something here and now only."""
        if not self.records:
            return events
        matches = {
            place: replace(
                columns,
                columns=[
                    self.dictionary.decode(each).dictionary_encode()
                    if isinstance(each, np.ndarray)
                    else each
                    for each in columns.columns
                ],
            )
            if any(isinstance(each, np.ndarray) for each in columns.columns)
            else columns
            for place, columns in events.matches.items()
        }
        return replace(events, matches=matches)

    def _hear(self, events: Events) -> None:
        if self._received is not None and events.changes is not None:
            self._received.hear(events.changes)
        for place, columns in events.matches.items():
            plan, leaf = self.network.leaves[place]
            count = len(columns.time)
            values = np.empty((count, len(leaf.variables)), dtype=np.int64)
            for number, column in enumerate(columns.columns):
                if isinstance(column, np.ndarray):
                    values[:, number] = column
                else:
                    values[:, number] = self.dictionary.encode(column)
            for number in range(len(plan.times)):
                values[:, len(plan.variables) + number] = columns.time + ZERO
            leaf.hear(Matches(columns.time, columns.position, values))
        for place, elements in events.elements.items():
            clock = self.network.clocks.get(self.sources[place])
            if clock is not None:
                clock.hear(elements)
        if self._closes is not None:
            for place, (first, last) in events.seen.items():
                self._closes.hear(self.sources[place], first, last)

    def _cuts(self, events: Events, through: int) -> list[int]:
        """Find instants at which to cut a long step: about as many changes as a chunk in each part.

        An eager join has what goes in its way until all that came was joined. Cut, it has at most what
        a chunk brings besides the windows' content, however long the step.
        """
        count = sum(len(columns.time) for columns in events.matches.values())
        if count <= self.chunk:
            return []
        times = np.sort(np.concatenate([each.time for each in events.matches.values()]))
        cuts = np.unique(times[self.chunk :: self.chunk])
        return [int(cut) for cut in cuts if self._through < cut < through]

    def _advance(
        self, through: int, *, admitted: int = FOREVER, spell: bool = True
    ) -> tuple[Rows, tuple[pa.Array, ...]]:
        deltas = self.network.advance(through, admitted)
        place = self.network.place
        root = deltas[place(self._root)] if self._root is not None else no_change()
        tracked = [deltas[place(each)] for each in self._trackers]
        reports = self._reports(root, tracked, through)
        self._reported = reports
        self._report = int(reports[-1]) if len(reports) else self._report
        if self._recomputed is not None:
            self._recomputed.take([deltas[place(leaf)] for _, leaf in self._recomputed.leaves])
        rows = self._output.step(root, reports)
        if self._router is not None:
            rows = self._router.routed(rows)
        if self._recomputed is not None:
            self._recomputed.finish()
        spelled = tuple(
            self.dictionary.decode(np.ascontiguousarray(rows.values[:, column]))
            for column in range(rows.values.shape[1] if spell else 0)
        )
        if self._closes is not None or self.query.report.non_empty_only:
            for _, leaf in self.network.leaves:
                leaf.remember(self._report)
        self.network.settle()
        self.dictionary.settle()
        return rows, spelled

    def _reports(self, root: Delta, tracked: list[Delta], through: int) -> Ints:
        if self.program.eager:
            return ints(0)
        non_empty = self.query.report.non_empty_only
        if self._told is not None:
            self._tracked += 0 if non_empty else int(root.sign.sum())
            return self._told
        if not self.query.windows:
            # A plain SPARQL query: one report.
            return ints(0 if self._steps else 1)
        if self._closes is None:
            changes = [each.t for each in tracked] if tracked else [root.t]
            reports = np.unique(np.concatenate(changes))
            reports = reports[reports > ALWAYS]
            if not non_empty:
                return reports
        counted = tracked if non_empty else [root]
        t = np.concatenate([each.t for each in counted])
        order = np.argsort(t, kind="stable")
        t, signs = t[order], np.concatenate([each.sign for each in counted])[order]
        counts = np.concatenate(([0], np.cumsum(signs))) + self._tracked
        self._tracked = int(counts[-1])
        if self._closes is not None:
            changed = np.unique(t)
            there = np.append(counts[0], counts[np.searchsorted(t, changed, side="right")]) > 0
            reports = self._closes.advance(through, changed, self._tells(there))
        if non_empty:
            reports = reports[counts[np.searchsorted(t, reports, side="right")] > 0]
        return reports

    def _tells(self, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say where every close brings answers, given where there are contents or solutions."""
        if isinstance(self._output, Differences):
            return np.zeros_like(there)  # only what changes is told
        # Without solutions there are no answers, but a second stage may make some of nothing.
        is_silent = self._root is not None and self.program.sent is None
        if self.query.report.non_empty_only or (
            is_silent and not isinstance(self.query.form, AskForm)
        ):
            return there
        return np.ones_like(there)

    def _spelled(self, found: list[tuple[Rows, tuple[pa.Array, ...]]]) -> Answers:
        rows = [each for each, _ in found] or [no_rows(len(self.variables))]
        columns = tuple(
            pa.concat_arrays([spelled[column] for _, spelled in found])
            for column in range(len(self.variables))
        )
        return Answers(
            self.variables,
            np.concatenate([each.t for each in rows]),
            np.concatenate([each.sign for each in rows]),
            columns,
            None
            if self._router is None
            else np.concatenate([each.query for each in rows if each.query is not None]),
        )

    # --- state ---

    def held(self) -> int:
        """How many mappings are remembered, those of intermediate results included."""
        return self.network.held() + self._output.held()

    def layout(self) -> Arrays:
        """Give what does not depend on streams, before the first step; nothing if that is nothing.

        A shard of the same query and static data that is given it has to make none of it.
        """
        own = self.network.layout()
        if not own:
            return NO_LAYOUT
        found = {f"network.{name}": each for name, each in own.items()}
        return found | {f"dictionary.{name}": e for name, e in self.dictionary.layout().items()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the whole state as arrays, between two steps."""
        found: dict[str, NDArray[Any]] = {
            "shard": np.array([self._through, self._tracked, self._steps, self._report]),
            "windows": np.frombuffer(self._windows, dtype=np.uint8),
            "leaves": np.array(
                [self.network.place(leaf) for _, leaf in self.network.leaves], dtype=np.int64
            ),
        }
        found |= {f"network.{name}": each for name, each in self.network.arrays().items()}
        found |= {f"output.{name}": each for name, each in self._output.arrays().items()}
        # Over other static data, windows have to be read without the dictionary's static terms.
        leaves = [
            numbers.ravel()
            for leaf, own in self._held_by_leaves(found)
            for numbers in leaf.terms(own)
        ]
        told = self.dictionary.arrays(np.concatenate([ints(0), *leaves]))
        found |= {f"dictionary.{name}": each for name, each in told.items()}
        if self._recomputed is not None:
            found |= {f"held.{name}": each for name, each in self._recomputed.arrays().items()}
        if self._closes is not None:
            found |= self._closes.arrays(self.sources)
        return found

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave, in a shard made for the same query and static data."""
        self._restore_times(arrays)
        self.dictionary.restore(part("dictionary.", arrays))
        if self._router is not None:
            self._router.number_anew()
        self.network.restore(part("network.", arrays))
        self._output.restore(part("output.", arrays))
        if self._recomputed is not None:
            self._recomputed.restore(part("held.", arrays))

    def _restore_times(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._through, self._tracked, self._steps, self._report = map(int, arrays["shard"])
        if self._closes is not None:
            self._closes.restore(arrays, self.sources)

    def _held_by_leaves(self, arrays: Mapping[str, NDArray[Any]]) -> list[tuple[Leaf, Arrays]]:
        """Give for each leaf what it held: other operators may have other places."""
        return [
            (leaf, part(f"network.operator.{place}.", arrays))
            for (_, leaf), place in zip(self.network.leaves, arrays["leaves"], strict=True)
        ]

    @cached_property
    def fingerprint(self) -> bytes:
        """Name the query, its network and the static rows in it: what state depends on."""
        return state.fingerprint_of(self.program, self.network)

    @cached_property
    def _windows(self) -> bytes:
        return state.windows_of(self.program, self.network)

    def snapshot(self) -> bytes:
        """Give the whole state as bytes; they grow with what is held."""
        return write_frame(Kind.SNAPSHOT, self.fingerprint, self.arrays())

    def delta(self) -> bytes:
        """Give what the last step changed as bytes; they grow with what arrived in it.

        That is what the step was given: taking it again is cheaper than writing down all that
        followed from it, and comes to the same.
        """
        if self._last is None or not self.records:
            raise InternalError("there is no step to give the delta of")
        return state.write_delta(self.fingerprint, self._last)

    def restore(self, snapshot: bytes | None, deltas: Sequence[bytes] = ()) -> None:
        """Take up the state that another shard of the same query left; no answer comes again.

        Args:
            snapshot: What `snapshot` gave; None to start with nothing.
            deltas: What `delta` gave after each step since then.

        Raises:
            StateError: Bytes are damaged, or belong to another query, release or place.
        """
        self._check_new()
        if snapshot is not None:
            self.restore_arrays(read_frame(Kind.SNAPSHOT, self.fingerprint, snapshot))
        for each in deltas:
            step = state.read_delta(self.fingerprint, each)
            if step.number != self._steps:
                raise StateError(
                    f"the delta of step {step.number + 1} where that of step {self._steps + 1} "
                    "was to come",
                    hint="Give all deltas since the snapshot, in order.",
                )
            self._run(step.events, step.through, spell=False)

    def take_over(self, snapshot: bytes) -> Answers:
        """Take up the state of a shard over other static data, as if it had been this shard's.

        What its windows held, and what the last report saw of them, comes once more. Answers that the
        shard would have given by then are not wanted again; those of a first stage tell the second
        what it would have been given.

        Raises:
            StateError: Bytes are damaged, or belong to another query or release; or the static data
                makes it another query, that holds something else.
        """
        self._check_new()
        arrays = read_frame(Kind.SNAPSHOT, written_for(snapshot), snapshot)
        if arrays["windows"].tobytes() != self._windows:
            raise StateError(
                "a snapshot of another query, or of one that other static data made another of",
                hint="Start the query anew.",
            )
        self._restore_times(arrays)
        before = Dictionary()
        before.restore(part("dictionary.", arrays))
        for leaf, held in self._held_by_leaves(arrays):
            for numbers in leaf.terms(held):
                known, places = np.unique(numbers, return_inverse=True)
                again = self.dictionary.encode(before.decode(known))
                numbers[...] = again[places].reshape(numbers.shape)
            leaf.hear_again(held)
        for number, clock in enumerate(self.network.clocks.values()):
            clock.restore(part(f"network.clock.{number}.", arrays))
        if not self.query.report.non_empty_only:
            self._tracked = 0  # solutions come once more
        if self.tells_reports:
            # Of all reports the last is enough: the next is compared with it.
            self._told = np.array([self._report] if self._report > ALWAYS else [], dtype=np.int64)
        found = self._advance(self._through)
        self.reported = self._reported
        return self._spelled([found])

    def _check_new(self) -> None:
        if self._steps:
            raise InternalError("state can only be taken up before the first step")


__all__ = ["CHUNK", "FOREVER", "Events", "MatchColumns", "Shard"]
