"""What a network does before each batch: the changes that count from it on reach matching and shards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.runtime.match.matched import NarrowPacker, matched_rows
from quadweir.runtime.network.backfill import note_backfilled
from quadweir.runtime.network.changes import NetworkChange
from quadweir.runtime.network.queries import VersionChange
from quadweir.runtime.network.spec import UNITS
from quadweir.runtime.network.status import UnitFacts
from quadweir.runtime.shard.base import BatchPlan, JobControl
from quadweir.runtime.shard.journal import LONGEST_LOG
from quadweir.runtime.spark.replacing import Replaced
from quadweir.runtime.wire.pack import Packer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.plan.matchtests import Matching
    from quadweir.runtime.network.asked import AskedTerms
    from quadweir.runtime.network.controllog import ControlLog
    from quadweir.runtime.network.delivery import Delivery
    from quadweir.runtime.network.registry import QueryRegistry
    from quadweir.runtime.network.spec import NetworkSpec
    from quadweir.runtime.network.templates import Templates

# A journal may need what it names for as many batches as it logs, and one more.
_REMEMBERED: Final = LONGEST_LOG + 2
_MOST_CHANGES: Final = 1000
"""After so many changes that no journal needs any more, the control log begins again."""


@final
class NetworkControl(JobControl):
    """Brings the changes of the registry to matching and to the shards, between two batches.

    Args:
        registry: the queries.
        log: says which batch runs with which version.
        templates: merges what templates match.
        spec: what shards are made from; it learns the templates.
        delivery: hands answers to sinks; it learns which queries there are.
        asked: the terms that queries ask for.
    """

    def __init__(
        self,
        registry: QueryRegistry,
        log: ControlLog,
        templates: Templates,
        spec: NetworkSpec,
        delivery: Delivery,
        asked: AskedTerms,
    ) -> None:
        self._registry = registry
        self._log = log
        self._templates = templates
        self._spec = spec
        self._delivery = delivery
        self.units: list[UnitFacts] = []
        """What each shard reported about each template after the last batch."""
        spec.grow(registry.specs.values())
        self._members: Counter[int] | None = None
        self._version = 0
        self._sent: set[int] = set()
        self._matching: Matching | None = None
        self._rows: Replaced | None = None
        # Templates without queries, and the batch in which the last one left.
        self._unused: dict[int, int] = {}
        self._asked = asked

    @property
    def packer(self) -> NarrowPacker:
        """What packs the rows of the present version."""
        matching = self._matching
        if matching is None:
            matching, _ = self._templates.merged([])
        return NarrowPacker(Packer.of(matching, self._spec.shards))

    def begin(self, batch: int) -> BatchPlan:
        version = self._log.begin(batch)
        members = self._members
        if members is None:
            # The shards are as they were before this batch.
            self._version = self._log.version_of(batch - 1)
            ran = [*self._registry.queries_at(self._version).values()]
            self._delivery.change(VersionChange(joining=ran))
            self._asked.change(VersionChange(joining=ran), self._registry.specs)
            members = Counter(each.template for each in ran)
            self._members = members
        change = self._registry.take_changes(self._version, version)
        self._version = version
        known = +members
        if change is not None:
            self._asked.change(change, self._registry.specs)
            members.update(each.template for each in change.joining)
            members.subtract(each.template for each in change.leaving)
            self._delivery.change(change)
        bits, packer = None, None
        if self._matching is None or (+members).keys() != known.keys():
            used = [self._registry.specs[each] for each in sorted(+members)]
            self._matching, bits = self._templates.merged(used)
            packer, self._rows = self.packer, Replaced(self._matched)
        grown = [*self._grown(), *self._forgotten(batch)]
        blob = b""
        if change is not None or bits is not None:
            change = change or VersionChange()
            blob = NetworkChange(
                version,
                bits,
                tuple(change.joinings()),
                tuple(each.number for each in change.leaving),
                tuple(change.paused),
                tuple(change.resumed),
                tuple(each.number for each in change.leaving if each.stopped is not None),
            ).to_bytes()
        self._compact(batch)
        assert self._rows is not None, "the first batch has made them"
        return BatchPlan(self._rows.over, packer, blob, tuple(grown))

    def end(self, batch: int, facts: Mapping[str, Any]) -> None:  # noqa: ARG002 - the last one
        reports = [json.loads(each) for each in facts[UNITS]]
        self.units = [UnitFacts(*unit) for report in reports for unit in report["units"]]
        reasons = {
            number: why
            for report in reports
            for _, members, why in report["failed"]
            for number in members
        }
        for report in reports:
            note_backfilled(self._registry, report["backfilled"])
        reasons |= self._delivery.take_failures()
        if reasons:
            self._registry.stop(reasons)

    def _matched(self, frame: DataFrame) -> DataFrame:
        assert self._matching is not None, "a batch has begun"
        return matched_rows(
            frame, self._matching, len(self._spec.shards), self._asked.of(self._matching)
        )

    def _grown(self) -> list[object]:
        """Return the templates that workers do not have yet."""
        known = self._registry.templates()
        new = [each for number, each in known.items() if number not in self._sent]
        self._sent |= {each.number for each in new}
        self._spec.grow(new)
        return [*new]

    def _forgotten(self, batch: int) -> list[object]:
        """Return the numbers of templates that no journal names any more."""
        assert self._members is not None
        for number in self._registry.templates():
            if self._members[number]:
                self._unused.pop(number, None)
            else:
                self._unused.setdefault(number, batch)
        old = [each for each, since in self._unused.items() if since + _REMEMBERED < batch]
        gone = self._registry.forget(old)
        for number in gone:
            self._unused.pop(number)
            self._sent.discard(number)
            self._asked.forget(number)
        self._spec.grow(gone)
        return [*gone]

    def _compact(self, batch: int) -> None:
        """Begin the control log again, now and then."""
        version = self._log.version_of(batch - _REMEMBERED)
        if version - self._log.first > _MOST_CHANGES:
            self._log.compact(version)
