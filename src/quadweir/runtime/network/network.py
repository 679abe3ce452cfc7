"""A network: many continuous queries over the same streams, in one Spark query.

Queries come and go while it runs. A change counts from the next batch on, and survives a crash from
the moment when the call returns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

from quadweir.errors import QuadweirError
from quadweir.paths import PathLike, as_path
from quadweir.runtime.host.base import Trigger
from quadweir.runtime.network.backfill import find_not_backfilled
from quadweir.runtime.network.delivery import prepare_target
from quadweir.runtime.network.handle import NetworkHandle
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.running import NetworkOptions, NetworkRun
from quadweir.runtime.network.status import Registration
from quadweir.times import DurationLike, as_duration

if TYPE_CHECKING:
    from quadweir.runtime.network.delivery import NetworkAnswer, Target
    from quadweir.runtime.network.templates import NetworkInputs
    from quadweir.sinks.base import Sink


@final
class Network(NetworkHandle):
    """Queries over the same streams that run together.

    `Engine.network` makes it. Queries can be registered before it starts and while it runs.

    Args:
        inputs: what its queries read.
        most_held: how many mappings the queries of one template may hold in a shard, if there is a
            limit.
        most_answers: how many answers a query may give in a second, if there is a limit.
    """

    def __init__(
        self,
        inputs: NetworkInputs,
        *,
        most_held: int | None = None,
        most_answers: int | None = None,
    ) -> None:
        super().__init__(inputs)
        self._most_held = most_held
        self._most_answers = most_answers
        self._targets: dict[str, Target] = {}
        # Held by changes of queries: none falls between two runs.
        self._reloading = threading.RLock()

    # --- queries ---

    def register(
        self,
        query: str,
        text: str | QueryText,
        *,
        send_to: Sink | Callable[[list[NetworkAnswer]], None] | None = None,
        backfill: bool = False,
    ) -> Registration:
        """Register a query; in a running network it joins with the next batch (J1).

        Args:
            query: its name.
            text: the query, in any dialect.
            send_to: where its answers go, in addition to the sink of the network: a sink, or a
                function that gets the answers of each batch.
            backfill: whether it sees what shared windows hold already (J5). Default: its windows
                start empty.

        Raises:
            QuerySyntaxError: the text is not a query.
            UsageError: there is another query of this name.
            PlanError: it cannot be planned.
        """
        targets = {query: send_to} if send_to else {}
        return _without_errors(self.register_all({query: text}, send_to=targets, backfill=backfill))

    def register_all(
        self,
        queries: Mapping[str, str | QueryText],
        *,
        send_to: Mapping[str, Sink | Callable[[list[NetworkAnswer]], None]] | None = None,
        replacing: bool = False,
        backfill: bool = False,
    ) -> Registration:
        """Register many queries at once. After a crash, all of those that are good are there, or none.

        Args:
            queries: the queries, by name. One that is there already with the same text stays.
            send_to: where the answers of some of them go, too.
            replacing: whether queries of the same name with another text are replaced.
            backfill: whether all of them see what shared windows hold already (J5); a `QueryText`
                can ask for that alone.
        """
        texts = {
            name: text if isinstance(text, QueryText) else QueryText(text)
            for name, text in queries.items()
        }
        if backfill:
            texts = {name: replace(text, backfill=True) for name, text in texts.items()}
        targets = send_to or {}
        for target in targets.values():
            prepare_target(target)
        with self._reloading:
            if self._running is None:
                found = self._waiting.register(texts, replacing=replacing)
            else:
                found = self._join(self._running, texts, targets, replacing=replacing)
            here = {name: each for name, each in targets.items() if name not in found.refused}
            self._targets |= here
        return found

    def _join(
        self,
        running: NetworkRun,
        texts: Mapping[str, QueryText],
        targets: Mapping[str, Target],
        *,
        replacing: bool,
    ) -> Registration:
        """Register queries in a running network; none of their answers misses its sink."""
        delivery = running.delivery
        for name, target in targets.items():
            delivery.expect(name, target)
        made, refused = running.registry.register(texts, replacing=replacing)
        new = {each.id for each in made}
        for name, target in targets.items():
            if name in refused:
                delivery.expect(name, self._targets.get(name))
            elif name not in new:
                delivery.send(name, target)
        empty = find_not_backfilled(running.registry, running.log.running, made)
        return Registration(tuple(each.id for each in made), refused, empty)

    def replace(
        self,
        query: str,
        text: str | QueryText,
        *,
        send_to: Sink | Callable[[list[NetworkAnswer]], None] | None = None,
        backfill: bool = False,
    ) -> Registration:
        """Register a query in place of one of the same name, in one batch.

        With backfill it can also see what the query of before held.

        Raises:
            QuadweirError: as `register`; the query of before then stays.
        """
        targets = {query: send_to} if send_to else {}
        return _without_errors(
            self.register_all({query: text}, send_to=targets, replacing=True, backfill=backfill)
        )

    def unregister(self, *queries: str) -> None:
        """Let queries leave; they give no answers from the next batch on (J3).

        Raises:
            UsageError: there is no query of a name; then all stay.
        """
        with self._reloading:
            if self._running is None:
                gone = self._waiting.unregister(queries)
            else:
                gone = self._running.registry.unregister(queries)
            for name in gone:
                self._targets.pop(name, None)
                if self._running is not None:
                    # The present batch may still have answers for its sink.
                    self._running.delivery.expect(name, None)

    def pause(self, *queries: str) -> None:
        """Let queries give no answers for now; their windows go on (J4).

        Raises:
            UsageError: there is no query of a name.
        """
        self._pause(queries, is_paused=True)

    def resume(self, *queries: str) -> None:
        """Let paused queries give answers again.

        Raises:
            UsageError: there is no query of a name.
        """
        self._pause(queries, is_paused=False)

    def _pause(self, queries: tuple[str, ...], *, is_paused: bool) -> None:
        with self._reloading:
            known = self._waiting if self._running is None else self._running.registry
            known.pause(queries, is_paused=is_paused)

    def send(self, query: str, target: Sink | Callable[[list[NetworkAnswer]], None] | None) -> None:
        """Hand the answers of a query to a sink or a function, too; None for no longer."""
        if target is None:
            self._targets.pop(query, None)
        else:
            prepare_target(target)
            self._targets[query] = target
        if self._running is not None:
            self._running.delivery.send(query, target)

    # --- a run ---

    def start(
        self,
        sink: Sink | None = None,
        *,
        checkpoint: PathLike,
        every: DurationLike | None = None,
        available_now: bool = False,
        name: str | None = None,
        dead_letters: Sink | None = None,
        refused: Callable[[str, QuadweirError], None] | None = None,
        keep: Collection[str] | None = None,
        reload_static: bool = False,
    ) -> Network:
        """Start all queries, and continue with those that the checkpoint has.

        Args:
            sink: where the answers of all queries go, as JSON lines that name the query.
            checkpoint: the folder of offsets, state and queries.
            every: how often a batch begins; default: as soon as the last one is done.
            available_now: take what is there now and end.
            name: the name of the Spark query.
            dead_letters: where rows of `rows.DEAD_LETTER_SCHEMA` go.
            refused: gets the name of each query that cannot be planned, and why; the others run.
                Default: such a query is an error, and nothing starts.
            keep: which queries of the checkpoint go on, besides those registered here, which are
                paused or not as they are here. Default: all go on.
            reload_static: continue with static data as it is now, if the checkpoint was made with
                other data. A query whose windows cannot be kept is stopped, with the reason.

        Raises:
            StateError: another process runs with the checkpoint; or it was made for other streams,
                static data, schema or number of shards; the error says what differs.
            UsageError: the network runs already, or its streams are bounded.
            QuadweirError: a query that was registered before cannot be planned.
        """
        self._refuse_second_run()
        options = NetworkOptions(
            sink=sink,
            dead_letters=dead_letters,
            trigger=Trigger(None if every is None else as_duration(every), available_now, name),
            refuse=refused,
            keep=keep,
            most_held=self._most_held,
            most_answers=self._most_answers,
            reload_static=reload_static,
        )
        self._running = NetworkRun.start(
            self._inputs, as_path(checkpoint), self._waiting, self._targets, options
        )
        return self

    def reload_static(self) -> bool:
        """Read static data again; return whether it is different.

        A running network stops when the present batch is done, and continues from its checkpoint: a
        batch sees either the old data or the new data. What windows hold is joined with the new
        data. Answers that appear or disappear only because of the new data are not reported. If the
        new data cannot be read or used, the network continues with the old data.

        Raises:
            SourceError: a file no longer exists.
            DataError: a file is not what its name says.
            UnsupportedError: with the new data, shards would have to hold other rows.
        """
        running = self._running
        if running is None or not running.run.isActive:
            return False
        if self._inputs.static.digest() == running.static:
            return False
        with self._reloading:
            running.refuse_other_rows(self._inputs)
            running.run.finish_batch()
            self.metrics()  # what Spark reports about the run that ends
            if self.exception() is None:
                self.stop()
                options = replace(running.options, keep=None, reload_static=True)
                self._running = NetworkRun.start(
                    self._inputs, running.checkpoint, self._waiting, self._targets, options
                )
                self._running.delivery.counts.update(running.delivery.counts)
        return True

    def _release(self) -> None:
        """Let others have the checkpoint of a run that has ended, and keep its queries."""
        if self._running is None:
            return
        self._running.release()
        known = {query.id: query for query in self._running.registry.queries()}
        self._waiting.texts = {name: each.text for name, each in known.items()}
        self._waiting.paused = {name for name, each in known.items() if each.is_paused}
        self._running, self._ended = None, self._running


def _without_errors(found: Registration) -> Registration:
    for error in found.refused.values():
        raise error
    return found
