"""One shard of one query: matches in, answers out, state that can be saved and brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.algebra.analyze import check_windows
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import AskForm, ContinuousQuery, DescribeForm
from quadweir.algebra.streams import OutputOperator
from quadweir.errors import InternalError, StateError, UnsupportedError
from quadweir.kernel import state
from quadweir.kernel.answers import (
    Answers,
    Differences,
    Output,
    Passed,
    Rows,
    Whole,
    no_rows,
)
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.build import Builder, static_dataset
from quadweir.kernel.codec import Kind, read_frame, write_frame, written_for
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.events import Events, MatchColumns, Recorded
from quadweir.kernel.fixed import Loaded, Share, StaticSource
from quadweir.kernel.given import Cut, Given
from quadweir.kernel.instants import Closes, reports_on_close
from quadweir.kernel.interning import ZERO
from quadweir.kernel.layout import NO_LAYOUT, Arrays
from quadweir.kernel.network import LeafPlan, Network, Source, part
from quadweir.kernel.outputs import output_of
from quadweir.kernel.recompute import Recomputed
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.retention import let_go
from quadweir.kernel.routing import Router
from quadweir.kernel.shapes import (
    NotIncrementalError,
    answer_variables,
    is_eager,
    modifiers_of,
    needs_content,
)
from quadweir.kernel.window import Leaf, Matches
from quadweir.sharing import Template

# How many changes run through the operators at once: enough to make the way of one cheap, few
# enough that what they touch stays in the processor's caches.
CHUNK: Final = 1 << 16


@final
class Shard:
    """The windows, indexes and groups of one query, or of one shard of it.

    Args:
        query: The query; best optimised.
        static: The static data that the engine holds, or what the query's share of it is had from.
        streams: The streams there are; only windows over a stream variable need them.
        incremental: False to evaluate the query anew at every report; for comparison.
        records: False if nobody will ask for `delta`.
        template: What the query is a template of; answers then say whose they are.
        cut: Which stage of the query this is a shard of, if it has two. The first gives changes as
            its answers.
        runs: False if it is only looked at, to plan: then static data is not indexed.
        share: What this shard has of static data, if not all.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        *,
        static: Dataset | StaticSource | None = None,
        streams: Sequence[str] = (),
        incremental: bool = True,
        records: bool = True,
        template: Template | None = None,
        cut: Cut | None = None,
        runs: bool = True,
        share: Share | None = None,
    ) -> None:
        check_windows(query)
        if isinstance(query.form, DescribeForm):
            raise UnsupportedError(
                "DESCRIBE is not kept up to date over windows",
                hint="Use CONSTRUCT and say which triples are wanted.",
                span=query.span,
            )
        self.query = query
        self.streams = tuple(streams)
        self.records = records
        self.chunk = CHUNK
        """How many changes run through the operators at once, about; answers do not depend on it."""
        self.template = template
        self._static: StaticSource = (
            Loaded(static_dataset(query, static if static is not None else Dataset()))
            if static is None or isinstance(static, Dataset)
            else static
        )
        self._runs = runs
        is_known = runs and incremental and template is None
        self._share = share
        self._layout = NO_LAYOUT
        if is_known:
            self._layout = self._static.layout(query, self.streams, share)
        self.dictionary = Dictionary(part("dictionary.", self._layout) if self._layout else None)
        self.variables = answer_variables(query)
        self.why_not: str | None = "asked for" if not incremental else None
        self.eager = False
        self.cut = cut
        self.reported = ints(0)
        """The report instants of the last step; what a second stage has to be told."""
        if incremental:
            self._build_incremental()
        if self.why_not is not None:
            self._build_recomputed()
        if not self._layout:
            self.dictionary.grant()
        self._layout = NO_LAYOUT

    # --- set-up ---

    def _builder(self, *, eager: bool) -> Builder:
        builder = Builder(
            self.query,
            self._static,
            self.dictionary,
            self.streams,
            eager=eager,
            template=self.template,
            layout=part("network.", self._layout),
            share=self._share,
        )
        if self.cut is not None and self.cut.above:
            builder.network.given = (
                self.cut.place,
                Given(self.cut.variables, self.dictionary),
            )
        return builder

    def _build_incremental(self) -> None:
        eager = is_eager(self.query) and needs_content(self.query.pattern)
        if self._layout:
            eager = bool(self._layout["eager"][0])
        try:
            try:
                self._plan(eager=eager)
            except NotIncrementalError:
                if not eager:
                    raise
                self._plan(eager=False)
        except NotIncrementalError as error:
            self.why_not = str(error)

    def _plan(self, *, eager: bool) -> None:
        query = self.query
        builder = self._builder(eager=eager)
        # An order alone is seen only where a report is told as a whole.
        modifiers, inner = modifiers_of(
            query.pattern, orders=query.output is OutputOperator.RSTREAM
        )
        root = builder.build(inner)
        if builder.instants and not eager:
            raise NotIncrementalError("windows of different lengths")
        # The router looks at more than what is answered.
        parameters = self.template.parameters if self.template is not None else ()
        times = tuple(variable for _, variable in builder.instants)
        self._columns = (*self.variables, *parameters, *times)
        output = output_of(
            query, root, modifiers, inner, self._columns, self.dictionary, eager=eager
        )
        tells_all = (
            query.output is OutputOperator.RSTREAM
            or isinstance(query.form, AskForm)
            or not needs_content(query.pattern)
        )
        self._finish(builder, output, root, None, track=tells_all, eager=eager)

    def _build_recomputed(self) -> None:
        builder = self._builder(eager=False)
        sources = [
            source
            for number in range(len(self.query.windows))
            for source in builder.sources_of(number)
        ]
        leaves = [(source, builder.triples(source, timed=True)) for source in sources]
        recomputed = Recomputed(
            self.query, self._static.dataset(), leaves, self.variables, self.dictionary
        )
        output = Whole(
            None,
            recomputed.make,
            len(self.variables),
            self.query.output,
            self.dictionary,
            always_anew=True,
            stayed=recomputed.stayed if recomputed.derivations else None,
        )
        self._finish(builder, output, None, recomputed, track=True, eager=False)

    def _finish(
        self,
        builder: Builder,
        output: Output,
        root: Operator | None,
        recomputed: Recomputed | None,
        *,
        track: bool,
        eager: bool,
    ) -> None:
        query = self.query
        self.eager = eager
        self.network: Network = builder.network
        if root is not None:
            self.network.share_out(root)
        if self._runs:
            self.network.lay_out(part("network.", self._layout))
        self._output = output
        self._root = root
        self._recomputed = recomputed
        self.sources: tuple[Source, ...] = tuple(
            source for number in range(len(query.windows)) for source in builder.sources_of(number)
        )
        on_close = reports_on_close(query)
        if on_close:
            # The clocks of count windows tell when they close, whether anything matches or not.
            for source in self.sources:
                builder.clock(source)
        self._closes = Closes(query, self.sources, self.network.clocks) if on_close else None
        needed = query.report.non_empty_only or (track and not on_close)
        matched = len(self.network.leaves)
        self._trackers = [builder.content(source) for source in self.sources] if needed else []
        self._tracked = 0  # rows in all windows at the last report
        self._given: Given | None = None
        if self.cut is not None:
            self._keep_stage(self.cut, needed=needed or on_close)
        self.network.silence(but=self._root)
        if self.cut is None:
            let_go(self.network, self._root, eager=eager)
        self.leaves: tuple[LeafPlan, ...] = tuple(plan for plan, _ in self.network.leaves)
        self.trackers = range(matched, len(self.leaves))
        """The places of the leaves that only tell when contents change."""
        self._through = ALWAYS
        self._steps = 0
        self._told: Ints | None = None
        self._reported = ints(0)
        self._report = ALWAYS  # the last one
        self._last: Recorded | None = None
        self._router = (
            Router(
                self.template, self.leaves, len(self.variables), builder.instants, self.dictionary
            )
            if self.template is not None
            else None
        )

    def _keep_stage(self, cut: Cut, *, needed: bool) -> None:
        """Keep what belongs to one stage of the query."""
        network = self.network
        place = network.place
        if not cut.above:
            self._root = root = network.operators[cut.place][0]
            self._output = Passed(root, cut.variables, reports=needed)
            self.variables = self._columns = cut.variables
            # Leaves are told by number, also those that nothing is made of, as below a MINUS that
            # shares no variable.
            leaves = [place(leaf) for _, leaf in network.leaves]
            network.keep(network.below([cut.place, *leaves, *map(place, self._trackers)]))
            return
        assert network.given is not None
        assert self._root is not None
        self._given = network.given[1]
        network.keep(network.below([place(self._root)]))
        network.clocks = {}
        self._trackers, self._closes, self.sources = [], None, ()

    # --- what a plan wants to know ---

    @property
    def root(self) -> Operator | None:
        """The operator whose rows are the solutions; None if they are computed anew."""
        return self._root

    @property
    def answers_whole(self) -> bool:
        """Whether a report has to be seen as a whole."""
        return isinstance(self._output, Whole)

    @property
    def compares_values(self) -> bool:
        """Whether reports are compared by what is in them, rather than by what it was made of."""
        return isinstance(self._output, Differences) and not self._output.derivations

    @property
    def tells_reports(self) -> bool:
        """Whether the report instants are known before the solutions are."""
        return self._closes is not None or bool(self._trackers)

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
        if self._given is not None and events.changes is not None:
            self._given.hear(events.changes)
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
        if self.eager:
            return ints(0)
        if self._told is not None:
            return self._told
        if not self.query.windows:
            # A plain SPARQL query: one report.
            return ints(0 if self._steps else 1)
        if self._closes is not None:
            reports = self._closes.advance(through)
        else:
            changes = [each.t for each in tracked] if tracked else [root.t]
            reports = np.unique(np.concatenate(changes))
            reports = reports[reports > ALWAYS]
        if not self.query.report.non_empty_only:
            return reports
        t = np.concatenate([each.t for each in tracked])
        order = np.argsort(t, kind="stable")
        signs = np.concatenate([each.sign for each in tracked])[order]
        counts = np.concatenate(([0], np.cumsum(signs))) + self._tracked
        self._tracked = int(counts[-1])
        return reports[counts[np.searchsorted(t[order], reports, side="right")] > 0]

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
        found: dict[str, NDArray[Any]] = {"eager": np.array([self.eager], dtype=np.int64)}
        found |= {f"network.{name}": each for name, each in own.items()}
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
        query = replace(self.query, name=None)
        members = self.template.members if self.template is not None else ()
        return state.fingerprint_of(query, members, self.streams, self.network)

    @cached_property
    def _windows(self) -> bytes:
        query = replace(self.query, name=None)
        return state.windows_of(query, self.streams, self.network, eager=self.eager)

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
