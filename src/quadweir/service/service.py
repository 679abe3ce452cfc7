"""The service: what is declared, what runs, and who listens. Requests come in through `web/`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from quadweir._version import __version__
from quadweir.engine import Engine
from quadweir.errors import QuadweirError
from quadweir.runtime.static.data import StaticData
from quadweir.service.answerring import AnswerBlock
from quadweir.service.answers import AnswerDesk, topic_of
from quadweir.service.declarations import Declarations
from quadweir.service.mappings import MappingDesk
from quadweir.service.networkpool import NetworkPool
from quadweir.service.overview import STEP_MS, MappingNode, Overview, StreamNode
from quadweir.service.poolinputs import PoolInputs, digest_of
from quadweir.service.pressure import ByteBudget, SlowWork
from quadweir.service.problems import NotFoundError
from quadweir.service.queries import QueryDesk
from quadweir.service.shareddata import SharedFiles
from quadweir.service.sinks import DeadLetterBox
from quadweir.service.streams import StreamDesk
from quadweir.service.subscriptions import Event, EventBundle, EventHub, json_text
from quadweir.service.taps import StreamTaps
from quadweir.service.tokens import Ownership, Quotas
from quadweir.service.trying import TrialDesk
from quadweir.service.webhooks import Webhooks
from quadweir.sources.schemafiles import read_schema
from quadweir.times import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from quadweir.entailment.schema import Schema
    from quadweir.service.servednetwork import ServedNetwork
    from quadweir.service.settings import ServedApplication, ServiceSettings

OVERVIEW: Final = "overview"
LETTERS: Final = "letters"


@final
class LiveService:
    """Everything that the service knows.

    Args:
        spark: the session.
        app: what the file of the application says.
        settings: what the operator decides.
        report: called with what the operator should know.

    Attributes:
        declarations: what was declared over HTTP.
        hub: passes events to subscribers.
        letters: the last dead letters.
        streams: answers requests about streams.
        mappings: answers requests about mappings.
        overview: how everything is.
        pool: the networks.
        queries: answers requests about queries.
        answers: answers requests about answers.
        static: the static data of all queries.
        schema: the schema of all queries.
        taps: looks into streams and windows.
        trials: tries queries on what streams brought lately.
        webhooks: sends answers to others.
        quotas: what tokens have used.
        bodies: how many bytes requests hold.
        slow: does what may take seconds.
        owned_queries: the queries of tokens that may not have many.
        owned_streams: the streams of such tokens.
    """

    def __init__(
        self,
        spark: SparkSession,
        app: ServedApplication,
        settings: ServiceSettings,
        *,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._spark = spark
        self.app = app
        self.settings = settings
        self._report = report
        self.started_ms = time.time_ns() // 1_000_000
        self.is_ready = False
        self.declarations = Declarations(settings.data)
        self.hub = EventHub()
        self.letters = DeadLetterBox(self._tell_letters)
        self.streams = StreamDesk(app, settings, self.declarations)
        self.mappings = MappingDesk(spark, app, settings, self.declarations, self.streams)
        self.pool = NetworkPool(
            settings.data / "networks",
            self.declarations,
            app,
            settings.limits,
            inputs=self._inputs,
            letters=self.letters,
            tell=self._tell_answers,
            refused=self._refused,
        )
        self.static = SharedFiles(
            "static",
            settings.data / "static",
            [(each.path, each.graph) for each in app.static],
            self.declarations,
            self._reload,
        )
        self.schema = SharedFiles(
            "schema",
            settings.data / "schema",
            [(each, None) for each in app.schema],
            self.declarations,
            self._reload,
        )
        self.overview = Overview(self.pool.networks, self._stream_nodes, self._mapping_nodes)
        self.queries = QueryDesk(self.pool, self.overview, self.readable, settings.limits)
        self.answers = AnswerDesk(self.pool, self.hub, settings.limits)
        self.taps = StreamTaps(
            self.pool,
            self.readable,
            self.static.files,
            self._axioms,
            lambda name: self.hub.has(topic_of(name)),
        )
        self.trials = TrialDesk(self.queries, self.taps.elements, self.static.files, self._axioms)
        self.webhooks = Webhooks(
            self.declarations, self.answers.after, self.answers.latest, settings.allow_hosts
        )
        self.quotas = Quotas()
        self.bodies = ByteBudget(settings.limits.bodies_bytes)
        self.slow = SlowWork()
        self.owned_queries = Ownership(self.declarations, "queries")
        self.owned_streams = Ownership(self.declarations, "streams")
        self._ending = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True, name="quadweir-overview")

    # --- its life ---

    def start(self) -> None:
        """Start the networks of before, and the queries of the application.

        Raises:
            QuadweirError: the application cannot start.
        """
        self.pool.restore()
        self.taps.close_all()
        self._start_application()
        self.webhooks.start()
        self.overview.sample()
        self._sampler.start()
        self.is_ready = True

    def _reload(self) -> None:
        """Start all networks again, with static data and the schema as they are now."""
        self.pool.reload()
        for name, each in self.app.queries.items():
            if each.sink is not None and self.pool.has(name):
                self.pool.home_of(name).network.send(name, each.sink)

    def _start_application(self) -> None:
        """Register the queries of the file; those that it had before and has no longer leave."""
        app = self.app
        former = set(self.declarations.now.app_queries) - app.queries.keys()
        self.pool.unregister([each for each in former if self.pool.has(each)])
        names = list(app.queries)
        self.declarations.change(lambda now: setattr(now, "app_queries", names))
        texts = {name: each.text for name, each in app.queries.items()}
        _, refused = self.queries.register(texts, replacing=True)
        for error in refused.values():
            raise error
        for name, each in app.queries.items():
            home = self.pool.home_of(name)
            if each.sink is not None:
                home.network.send(name, each.sink)
            self.pool.pause(name, is_paused=each.is_paused)

    def end_overview(self) -> None:
        """Take no more samples."""
        self._ending.set()
        if self._sampler.is_alive():
            self._sampler.join()

    def stop(self) -> None:
        """Stop everything; it continues at the next start."""
        self.is_ready = False
        self.end_overview()
        self.webhooks.close()
        self.pool.stop()
        self.streams.close()

    def _refused(self, name: str, error: QuadweirError) -> None:
        self._report(f"the query {name} cannot run any more: {error}")

    # --- streams and mappings ---

    def readable(self) -> frozenset[str]:
        """Return the streams that queries can read."""
        declared = self.streams.declared()
        rdf = {iri for iri, each in declared.items() if each.format.is_rdf}
        return frozenset(rdf | {iri for _, made in self.mappings.made().values() for iri in made})

    def _inputs(self, starts: Mapping[str, int], reader: str) -> PoolInputs:
        engine = Engine(self._spark)
        engine.declare(*self.streams.opened(starts, reader))
        self.mappings.provide(engine)
        engine.schema(*self._schema_files())
        return PoolInputs(
            engine,
            self.readable(),
            tuple(self.static.files()),
            self._digest,
            self.streams.starts,
            self.streams.read_by,
        )

    def _schema_files(self) -> list[Path]:
        return [each.path for each in self.schema.files()]

    def _axioms(self) -> Schema | None:
        files = self._schema_files()
        return read_schema(files)[0] if files else None

    def _digest(self, streams: Iterable[str]) -> str:
        """Return a name of what the state of a network over some streams depends on."""
        declared, made = self.streams.declared(), self.mappings.made()
        wanted = set(streams)
        texts = {}
        for name, (sources, makes) in made.items():
            if wanted & {*makes}:
                wanted |= {*sources}
                texts[name] = self.mappings.one(name)
        tables = {iri: declared[iri].as_table() for iri in sorted(wanted) if iri in declared}
        static = StaticData.of(self.static.files()).digest()
        schema = StaticData.of(self._schema_files()).digest()
        shards = self.app.shards or self._spark.conf.get("spark.sql.shuffle.partitions")
        return digest_of([tables, texts, static, schema, str(shards)])

    def _stream_nodes(self, rates: Mapping[str, float]) -> Iterator[StreamNode]:
        declared = self.streams.declared()
        known = {**rates, **self.streams.rates()}
        for iri, each in declared.items():
            yield StreamNode(iri, each.kind, known.get(iri))
        for _, made in self.mappings.made().values():
            for iri in made:
                if iri not in declared:
                    yield StreamNode(iri, "mapping", known.get(iri))

    def _mapping_nodes(self) -> Iterator[MappingNode]:
        for name, (sources, made) in self.mappings.made().items():
            yield MappingNode(name, sources, made)

    def list_streams(self) -> list[dict[str, Any]]:
        """List the streams."""
        return [self.stream(node.iri) for node in self._stream_nodes({})]

    def stream(self, iri: str) -> dict[str, Any]:
        """Say how a stream is.

        Raises:
            NotFoundError: there is none of the IRI.
        """
        declared, maker = self.streams.declared().get(iri), self.mappings.maker_of(iri)
        if declared is None and maker is None:
            raise NotFoundError(
                f"there is no stream <{iri}>", hint="GET /streams lists the streams."
            )
        known = self.declarations.now.mappings
        is_own = maker in known if declared is None else self.streams.is_own(iri)
        return {
            "iri": iri,
            "kind": declared.kind if declared is not None else "mapping",
            "format": str(declared.format) if declared is not None else None,
            "made_by": maker,
            "declared_by": "api" if is_own else "app",
            "rate": self.overview.stream_rate(iri),
            "lag_ms": self.overview.lag_of(iri),
            "networks": [each.name for each in self.pool.readers(iri)],
            "pushed": self.streams.pushed(iri),
            "delay": format_duration(declared.delay) if declared is not None else None,
            "description": declared.description if declared is not None else None,
            "declaration": self.streams.shown(iri) if declared is not None else None,
        }

    def _readers(self, iri: str) -> Iterator[tuple[str, int]]:
        """Yield the networks that read a pushed stream, and from where, through mappings, too."""
        wanted = {iri}
        for sources, made in self.mappings.made().values():
            if iri in sources:
                wanted |= {*made}
        for name, record in self.declarations.now.networks.items():
            if wanted & {*record.streams}:
                yield name, record.starts.get(iri, 0)

    # --- events ---

    def _tell_answers(self, network: ServedNetwork, block: AnswerBlock) -> None:
        self.hub.run(lambda: self.answers.publish(network, block))

    def _tell_letters(self, letters: list[dict[str, Any]]) -> None:
        def publish() -> None:
            if self.hub.has(LETTERS):
                events = [Event(str(each["seq"]), "letter", json_text(each)) for each in letters]
                self.hub.publish(LETTERS, EventBundle(events))

        self.hub.run(publish)

    def _sample(self) -> None:
        while not self._ending.wait(STEP_MS / 1000):
            try:
                new = self.overview.sample()
                self.streams.forget(self._readers)
                self.taps.expire()
                self.answers.end_stopped(self.overview.samples())
                self.hub.run(lambda new=new: self._publish_overview(new))  # type: ignore[misc]
            except Exception as error:  # the next sample may be good
                self._report(f"the overview could not be taken: {type(error).__name__}: {error}")

    def _publish_overview(self, new: dict[str, Any]) -> None:
        if self.hub.has(OVERVIEW):
            text = json_text({**self.document(history=False), "sample": new})
            self.hub.publish(OVERVIEW, EventBundle([Event("", OVERVIEW, text)]))

    def document(
        self, *, history: bool = True, most_queries: int = 200, role: str = "read"
    ) -> dict[str, Any]:
        """Return the overview."""
        about = {
            "version": __version__,
            "started_ms": self.started_ms,
            "now_ms": time.time_ns() // 1_000_000,
            "ready": self.is_ready,
            "role": role,
            "shards": self.app.shards,
            "subscribers": self.hub.count,
        }
        found = self.overview.document(history=history, most_queries=most_queries)
        return {"service": about, **found}
