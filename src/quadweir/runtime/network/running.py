"""A run of a network: its registry, its control log, and the Spark query that serves all queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import (
    NotImplementedYetError,
    QuadweirError,
    UnsupportedError,
    UsageError,
)
from quadweir.runtime.checkpoint import DRIVER, Fingerprint, network_algebra
from quadweir.runtime.claims import Claim
from quadweir.runtime.host.base import AnswerOutput, Run, Trigger
from quadweir.runtime.host.choice import HOSTS, usual_host
from quadweir.runtime.match.feeds import open_feeds
from quadweir.runtime.network.asked import AskedTerms
from quadweir.runtime.network.control import NetworkControl
from quadweir.runtime.network.controllog import FOLDER, ControlLog
from quadweir.runtime.network.delivery import Delivery, Target
from quadweir.runtime.network.queries import of_query
from quadweir.runtime.network.registry import QueryRegistry
from quadweir.runtime.network.spec import NETWORK_METRICS, NetworkSpec
from quadweir.runtime.network.templates import NetworkInputs, Templates
from quadweir.runtime.network.unit import other_rows
from quadweir.runtime.shard.base import Job
from quadweir.runtime.spark.sharedsets import SharedSet
from quadweir.runtime.wire.deadletters import dead_letters as letters_of
from quadweir.terms import IRI

if TYPE_CHECKING:
    from quadweir.runtime.match.feeds import Opened
    from quadweir.runtime.network.waiting import WaitingQueries
    from quadweir.sinks.base import Sink

_JOB: Final = "network"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """The arguments of `Network.start`.

    Attributes:
        sink: where the answers of all queries go.
        dead_letters: where rows that cannot be used go.
        trigger: when batches begin.
        refuse: gets the name of each query that cannot be planned, and why.
        keep: which queries of the checkpoint go on, besides those that wait; None for all.
        most_held: how many mappings the queries of one template may hold in a shard.
        most_answers: how many answers a query may give in a second.
        reload_static: whether the checkpoint may have been made with other static data.
    """

    sink: Sink | None
    dead_letters: Sink | None
    trigger: Trigger
    refuse: Callable[[str, QuadweirError], None] | None
    keep: Collection[str] | None
    most_held: int | None
    most_answers: int | None
    reload_static: bool = False


@final
@dataclass(frozen=True, slots=True)
class NetworkRun:
    """A network that was started over a checkpoint.

    Attributes:
        registry: the queries.
        delivery: hands answers to sinks.
        control: brings changes to matching and to shards.
        run: Spark's part.
        log: the changes of the registry.
        checkpoint: the folder of offsets, state and queries.
        options: how it was started.
        static: names the static data that it runs with.
    """

    registry: QueryRegistry
    delivery: Delivery
    control: NetworkControl
    run: Run
    log: ControlLog
    checkpoint: Path
    options: NetworkOptions
    static: str
    _asked: AskedTerms
    _claim: Claim

    @staticmethod
    def start(
        inputs: NetworkInputs,
        checkpoint: Path,
        waiting: WaitingQueries,
        targets: Mapping[str, Target],
        options: NetworkOptions,
    ) -> NetworkRun:
        """Start a run; what `Network.start` says about errors holds."""
        if usual_host(inputs.spark).name != DRIVER:
            raise NotImplementedYetError(
                "networks run on one machine only, for now",
                hint="Start Spark with the master local[*], or run the queries alone.",
            )
        claim = Claim(checkpoint)
        log: ControlLog | None = None
        try:
            opened = _open(inputs, checkpoint)
            fingerprint = _fingerprint(inputs)
            fingerprint.guard(checkpoint, reload_static=options.reload_static)
            log = ControlLog(checkpoint / FOLDER, _last_batch(checkpoint))
            templates = Templates(inputs)
            registry = QueryRegistry(templates, log)
            _register(registry, waiting, options)
            spec = NetworkSpec(
                opened.timing,
                tuple(range(inputs.shards)),
                letters=options.dead_letters is not None,
                most_held=options.most_held,
            )
            delivery = Delivery(inputs.spark, options.sink, most_answers=options.most_answers)
            for query, target in targets.items():
                delivery.send(query, target)
            asked = AskedTerms(lambda name: SharedSet(inputs.spark, name))
            control = NetworkControl(registry, log, templates, spec, delivery, asked)
            run = HOSTS[DRIVER].start(
                [_job(inputs, opened, spec, control)],
                _outputs(delivery, options.dead_letters),
                checkpoint=checkpoint,
                trigger=options.trigger,
            )
        except BaseException:
            if log is not None:
                log.close()
            claim.release()
            raise
        return NetworkRun(
            registry,
            delivery,
            control,
            run,
            log,
            checkpoint,
            options,
            fingerprint.static,
            asked,
            claim,
        )

    def refuse_other_rows(self, inputs: NetworkInputs) -> None:
        """Plan all templates over static data as it is now; nothing changes.

        Raises:
            UnsupportedError: the shards of a template would hold other rows.
            QuadweirError: static data cannot be read or used.
        """
        templates = Templates(inputs)
        now = self.registry.templates()
        for query in self.registry.queries():
            spec = now.pop(query.template, None)
            if spec is None:
                continue
            key, _ = templates.shape_of(query.text.parsed(), query.text.allow_unbounded)
            group = spec.number if spec.group is None else spec.group
            if templates.plan(key, spec.number, group=group).held != spec.held:
                error = other_rows()
                raise UnsupportedError(
                    f"{error.message}: {query.id}",
                    hint="The network continues with the old data. Unregister the query first.",
                )

    def release(self) -> None:
        """Let others have the checkpoint; the run has ended."""
        self.log.close()
        self._asked.close()
        self._claim.release()


def _open(inputs: NetworkInputs, checkpoint: Path) -> Opened:
    times = {
        iri: IRI(feed.timed_by) if feed.timed_by else None
        for iri, feed in sorted(inputs.feeds.items())
    }
    opened = open_feeds(times, inputs.feeds, checkpoint / "spool")
    if opened is None or not opened.is_streaming:
        raise UsageError(
            "the streams of the network are bounded: it has an end, and nothing to start",
            hint="Watch a folder (watch = true), or replay the files.",
        )
    return opened


def _register(
    registry: QueryRegistry,
    waiting: WaitingQueries,
    options: NetworkOptions,
) -> None:
    """Let queries join that wait, and let those leave that are not kept."""
    _, refused = registry.register(waiting.texts, replacing=True)
    for name, error in refused.items():
        if options.refuse is None:
            raise of_query(name, error)
        options.refuse(name, error)
    here = [name for name in waiting.texts if name not in refused]
    registry.pause([name for name in here if name in waiting.paused], is_paused=True)
    if options.keep is None:
        return
    registry.pause([name for name in here if name not in waiting.paused], is_paused=False)
    known = {*waiting.texts, *options.keep}
    registry.unregister(
        each.id for each in (*registry.queries(), *registry.stopped()) if each.id not in known
    )


def _job(inputs: NetworkInputs, opened: Opened, spec: NetworkSpec, control: NetworkControl) -> Job:
    counted = opened.counted()
    statements = counted.frame if spec.letters else counted.statements
    return Job(
        name=_JOB,
        counts=(inputs.shards,),
        rows=lambda _: statements,
        packer=lambda _keys, _clock: control.packer,
        stages=spec.stages,
        metrics=(NETWORK_METRICS,),
        has_padding=True,
        control=control,
    )


def _outputs(delivery: Delivery, dead_letters: Sink | None) -> list[AnswerOutput]:
    found = [AnswerOutput(delivery, lambda raws: raws[0])]
    if dead_letters is not None:
        found.append(AnswerOutput(dead_letters, lambda raws: letters_of(raws[0]), letters=True))
    return found


def _fingerprint(inputs: NetworkInputs) -> Fingerprint:
    return Fingerprint(
        network_algebra(inputs.feeds),
        inputs.shards,
        0,
        inputs.static.digest(),
        schema=inputs.schema.digest if inputs.schema is not None else "",
        shards_in=DRIVER,
        most=inputs.shards,
    )


def _last_batch(checkpoint: Path) -> int:
    """Return the last batch that Spark has begun; -1 if there is none."""
    offsets = checkpoint / "offsets"
    return max((int(each.name) for each in offsets.glob("[0-9]*")), default=-1)
