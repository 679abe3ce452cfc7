"""Which network a query belongs to. The sources of a network are fixed when it starts.

A query goes to a running network that reads its streams. If there is none, a network is started for
these streams; the others go on as they are (`docs/design/0018-service.md`).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from quadweir.errors import QuadweirError, UsageError
from quadweir.runtime.network.controllog import queries_in
from quadweir.runtime.network.graph import all_queries
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.status import Registration
from quadweir.service.answerring import AnswerBlock, AnswerRing
from quadweir.service.declarations import Declarations, Declared, NetworkRecord
from quadweir.service.networkbook import NetworkBook
from quadweir.service.poolinputs import PoolInputs, streams_of
from quadweir.service.problems import ConflictError, PressureError, UnavailableError
from quadweir.service.servednetwork import ServedNetwork
from quadweir.service.sinks import TAP

if TYPE_CHECKING:
    from quadweir.runtime.network.querytext import QueryText
    from quadweir.service.settings import ServedApplication, ServiceLimits
    from quadweir.service.sinks import DeadLetterBox


@final
class NetworkPool(NetworkBook):
    """The networks of the service.

    Args:
        folder: where they keep their state.
        declarations: the log of the service.
        app: the application.
        limits: how many there may be.
        inputs: makes what a network reads, from where it begins in pushed streams, and its id.
        letters: gets dead letters.
        tell: called with new answers, on the thread of a batch.
        refused: called with queries that cannot be planned again, and why.
    """

    def __init__(
        self,
        folder: Path,
        declarations: Declarations,
        app: ServedApplication,
        limits: ServiceLimits,
        *,
        inputs: Callable[[Mapping[str, int], str], PoolInputs],
        letters: DeadLetterBox,
        tell: Callable[[ServedNetwork, AnswerBlock], None],
        refused: Callable[[str, QuadweirError], None],
    ) -> None:
        super().__init__()
        # Where a replacement for a network begins: right after what the old one has read.
        self._left_at: dict[str, int] = {}
        self._folder = folder
        self._declarations = declarations
        self._app = app
        self._limits = limits
        self._inputs = inputs
        self._letters = letters
        self._tell = tell
        self._refused = refused
        # Held while queries or networks come and go.
        self.changing = threading.RLock()

    # --- queries ---

    def register(
        self,
        texts: Mapping[str, QueryText],
        streams: Mapping[str, frozenset[str]],
        *,
        replacing: bool,
    ) -> Registration:
        """Register queries, those of one network in one change.

        Args:
            texts: the queries, by name.
            streams: the streams that each of them reads.
            replacing: whether queries of the same name are replaced.
        """
        with self.changing:
            refused: dict[str, QuadweirError] = {}
            wanted = dict(texts)
            if not replacing:
                for name in [each for each in wanted if each in self._homes]:
                    if self._text_of(name) != wanted[name]:
                        refused[name] = ConflictError(
                            f"there is a query {name!r} already",
                            hint="Choose another name, or replace it.",
                        )
                        del wanted[name]
            groups: dict[frozenset[str], dict[str, QueryText]] = {}
            for name, text in wanted.items():
                groups.setdefault(streams[name], {})[name] = text
            made: list[str] = []
            # Networks of many streams first: they serve queries over some of them, too.
            for group in sorted(groups, key=lambda each: (-len(each), sorted(each))):
                found = self._register(group, groups[group])
                made += found.registered
                refused |= found.refused
            return Registration(tuple(made), refused)

    def _register(self, streams: frozenset[str], texts: Mapping[str, QueryText]) -> Registration:
        home = self.covering(streams)
        if home is None:
            try:
                home = self._new(streams, is_look=all(each.startswith(TAP) for each in texts))
            except QuadweirError as error:
                return Registration((), dict.fromkeys(texts, error))
        if home.state != "running":
            down = UnavailableError(
                f"the network {home.name}, which reads these streams, does not run",
                detail=str(home.error) if home.error is not None else None,
                hint="It starts again by itself. Try again later.",
            )
            return Registration((), dict.fromkeys(texts, down))
        moved = {
            name: self._homes[name]
            for name in texts
            if name in self._homes and self._homes[name] is not home
        }
        if moved:
            self._declarations.change(lambda now: now.homes.update(dict.fromkeys(moved, home.name)))
        replaced = [name for name in texts if self._homes.get(name) is home]
        found = home.network.register_all(dict(texts), replacing=True)
        home.forget([each for each in replaced if each in found.registered])
        for name in texts:
            if name in found.refused:
                continue
            former = moved.get(name)
            self._homes[name] = home
            if former is not None:
                former.network.unregister(name)
                former.forget([name])
        for former in {each.name: each for each in moved.values()}.values():
            self._retire(former)
        self._retire(home)
        return found

    def _text_of(self, query: str) -> QueryText | None:
        found = self._homes[query].query(query)
        return None if found is None or found.stopped is not None else found.text

    def unregister(self, queries: Sequence[str]) -> None:
        """Let queries leave.

        Raises:
            NotFoundError: there is no query of a name; then all stay.
        """
        with self.changing:
            homes: dict[str, list[str]] = {}
            for query in dict.fromkeys(queries):
                homes.setdefault(self.home_of(query).name, []).append(query)
            for name, own in homes.items():
                home = self._networks[name]
                home.network.unregister(*own)
                home.forget(own)
                for query in own:
                    del self._homes[query]
                if set(own) & self._declarations.now.homes.keys():
                    self._declarations.change(lambda now, own=own: _drop(now.homes, own))  # type: ignore[misc]
                self._retire(home)

    def pause(self, query: str, *, is_paused: bool) -> None:
        """Pause a query, or resume it."""
        home = self.home_of(query)
        change = home.network.pause if is_paused else home.network.resume
        try:
            change(query)
        except UsageError as error:
            # It was stopped because it failed.
            raise ConflictError(
                error.message, hint="PUT the query again to try it again."
            ) from None

    # --- networks ---

    def _new(self, streams: frozenset[str], *, is_look: bool) -> ServedNetwork:
        limit = self._limits.networks
        if is_look and len(self._looked_into()) >= limit // 2:
            # Whoever may only read must not keep others from registering queries.
            raise PressureError(
                "no query reads this stream, and other streams of which this is so are looked into",
                retry_after_s=60,
            )
        if len(self._networks) >= limit:
            raise PressureError(
                f"no network reads these streams together, and {limit} networks run already",
                retry_after_s=60,
                hint="Remove queries over other sets of streams, or let the operator allow more "
                "with --most-networks.",
            )
        return self.start(streams)

    def _looked_into(self) -> list[ServedNetwork]:
        """Return the networks that are there only because somebody looks into a stream."""
        needed = {home.name for name, home in self._homes.items() if not name.startswith(TAP)}
        return [
            each
            for each in self._networks.values()
            if not each.is_lasting and each.name not in needed
        ]

    def start(self, streams: frozenset[str], *, is_lasting: bool = False) -> ServedNetwork:
        """Start a network.

        Raises:
            QuadweirError: it cannot start.
        """
        name = f"n{self._declarations.now.next_network}"
        inputs = self._inputs({}, name)
        starts = {**inputs.starts(), **self._left_at}
        record = NetworkRecord(sorted(streams), inputs.digest(streams), starts)

        def note(now: Declared) -> None:
            now.networks[name] = record
            now.next_network += 1

        self._declarations.change(note)
        try:
            return self._open(name, record, is_lasting=is_lasting)
        except QuadweirError:
            self._forget(name)
            raise

    def restore(self) -> None:
        """Start the networks of before; queries of those that cannot go on move to others."""
        with self.changing:
            read = frozenset(self._app.read)
            records = sorted(self._declarations.now.networks.items(), key=lambda each: each[0])
            moving: dict[str, tuple[QueryText, bool]] = {}
            for name, record in records:
                held = self._held(name)
                inputs = self._inputs(record.starts, name)
                streams = frozenset(record.streams)
                if streams <= inputs.known and inputs.digest(streams) == record.inputs:
                    self._open(name, record, is_lasting=streams == read, again=True)
                    for query in held:
                        if self._declarations.now.homes.get(query, name) == name:
                            self._homes[query] = self._networks[name]
                else:
                    moving |= held
                    self._leave(name, record, inputs)
            if read and not any(each.streams == read for each in self._networks.values()):
                self.start(read, is_lasting=True)
            self._move(moving)
            self._left_at.clear()
            for name, _ in records:
                if name not in self._networks:
                    self._forget(name)
                    shutil.rmtree(self._folder / name, ignore_errors=True)
            for each in self.networks():
                self._tidy(each)
                self._retire(each)

    def _leave(self, name: str, record: NetworkRecord, inputs: PoolInputs) -> None:
        """Note up to where a network has read pushed streams, for those that take its place."""
        read = inputs.read_by(name)
        for iri, begin in record.starts.items():
            if iri in read:
                at = max(begin, read[iri])
                self._left_at[iri] = min(at, self._left_at.get(iri, at))

    def _held(self, name: str) -> dict[str, tuple[QueryText, bool]]:
        """Return the queries of a network, and which of them are paused."""
        return {
            query: (QueryText.of_table(table), is_paused)
            for query, table, is_paused in queries_in(self._folder / name / "checkpoint")
        }

    def _move(self, queries: Mapping[str, tuple[QueryText, bool]]) -> None:
        """Register queries whose network is gone; their windows begin empty."""
        texts, streams = {}, {}
        for name, (text, _) in queries.items():
            if name in self._homes:
                continue
            try:
                streams[name] = streams_of(text.parsed())
                texts[name] = text
            except QuadweirError as error:
                self._refused(name, error)
        found = self.register(texts, streams, replacing=True)
        for name, refusal in found.refused.items():
            self._refused(name, refusal)
        for name in found.registered:
            if queries[name][1]:
                self.pause(name, is_paused=True)

    def _tidy(self, network: ServedNetwork) -> None:
        """Remove queries that have moved to another network."""
        gone = [
            each.id
            for each in network.status()
            if each.id in self._homes and self._homes[each.id] is not network
        ]
        if gone:
            network.network.unregister(*gone)

    def _open(
        self, name: str, record: NetworkRecord, *, is_lasting: bool, again: bool = False
    ) -> ServedNetwork:
        inputs = self._inputs(record.starts, name)
        network = inputs.engine.network(
            streams=record.streams,
            static=inputs.static,
            shards=self._app.shards,
            most_held=self._app.most_held,
            most_answers=self._app.most_answers,
        )
        folder = self._folder / name
        found: ServedNetwork

        def tell(block: AnswerBlock) -> None:
            self._tell(found, block)

        most_bytes = self._limits.ring_bytes
        ring = AnswerRing(folder / "answers", most_bytes=most_bytes, tell=tell)
        taps = AnswerRing(folder / "taps", most_bytes=most_bytes, tell=tell)
        found = ServedNetwork(
            name, frozenset(record.streams), network, folder, ring, taps, is_lasting=is_lasting
        )
        try:
            found.start(self._app, self._letters, self._refused)
        except QuadweirError:
            if not again:
                found.remove()
                raise
        self._networks[name] = found
        return found

    def reload(self) -> None:
        """Start all networks again with other inputs; queries stay, their windows begin empty.

        Raises:
            QuadweirError: a network cannot start so; then it goes on as before.
        """
        with self.changing:
            # What is wrong with schema or static data is found before anything stops.
            inputs = self._inputs({}, "")
            for old in self.networks():
                inputs.digest(old.streams)
                texts = {each.id: each.text for each in all_queries(old.network)}
                paused = [each.id for each in all_queries(old.network) if each.is_paused]
                record = self._declarations.now.networks[old.name]
                old.stop()
                del self._networks[old.name]
                self._left_at.clear()
                self._leave(old.name, record, inputs)
                try:
                    new = self.start(old.streams, is_lasting=old.is_lasting)
                except QuadweirError:
                    self._open(old.name, record, is_lasting=old.is_lasting, again=True)
                    raise
                found = new.network.register_all(texts, replacing=True)
                for name, error in found.refused.items():
                    self._refused(name, error)
                new.network.pause(*(each for each in paused if each in found.registered))
                for name in texts:
                    if name in found.refused:
                        del self._homes[name]
                    else:
                        self._homes[name] = new
                self._forget(old.name)
                old.remove()
            self._left_at.clear()

    def _forget(self, name: str) -> None:
        def drop(now: Declared) -> None:
            now.networks.pop(name, None)

        self._declarations.change(drop)

    def _retire(self, network: ServedNetwork) -> None:
        """Stop a network that no query needs."""
        if network.is_lasting or any(each is network for each in self._homes.values()):
            return
        self._networks.pop(network.name, None)
        self._forget(network.name)
        network.remove()

    def stop(self) -> None:
        """Stop all networks; they continue at the next start."""
        with self.changing:
            for each in self._networks.values():
                each.stop()


def _drop(table: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        table.pop(name, None)
