"""What the shards of a network are made from, in whatever process they run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from quadweir import rows
from quadweir.runtime.shard.base import Counts
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.runtime.shard.facts import Fold
from quadweir.runtime.wire.deadletters import LETTER

if TYPE_CHECKING:
    from quadweir.plan.backfill import Need
    from quadweir.plan.template import QueryTemplate
    from quadweir.runtime.network.hosted import HostedNetwork
    from quadweir.runtime.shard.spec import ShardSpec

QUERY: Final = "query"
"""The column with the number of the query that an answer belongs to."""
TEMPLATE: Final = "template"
"""The column with the number of the template; the rows of one Arrow batch have the same."""
VALUES: Final = "values"
"""The column with the spellings of an answer, in the order of the query's variables."""
UNITS: Final = "units"
NETWORK_METRICS: Final = "quadweir_answers"
"""The name in Spark's progress of the facts of a network; as for a single query."""

NETWORK_FACTS: Final[Mapping[str, Fold]] = {
    "answers": Fold.SUM,
    "late": Fold.SUM,
    "through": Fold.LEAST,
    "held": Fold.SUM,
    "kernel_ms": Fold.MOST,
    "replayed": Fold.SUM,
    UNITS: Fold.LIST,
}
"""What a shard of a network reports about a batch; `units` are its templates, as JSON."""

OUTPUT: Final = StructType(
    [
        StructField(QUERY, LongType()),
        StructField(TEMPLATE, IntegerType()),
        StructField(rows.REPORT, LongType()),
        StructField(rows.SIGN, StringType()),
        StructField(VALUES, ArrayType(StringType())),
        StructField(LETTER, StringType()),
        *(
            StructField(name, StringType() if fold is Fold.LIST else LongType())
            for name, fold in NETWORK_FACTS.items()
        ),
    ]
)


@final
@dataclass(frozen=True)
class TemplateSpec:
    """What a worker makes the shard of one template from.

    Attributes:
        number: the number of the template; it is never given to another one.
        shards: makes the kernel's shard, as for a single query.
        home: the one shard that answers its queries; None if all do.
        template: the template as the kernel sees it, without members.
        reason: why its queries share no more than they do; empty if they share all.
        group: the group of templates with which it may run its joins; None if it runs apart. Groups
            have the number of their first template.
        joins: the joins that others may share, by their names, as text.
        apart: why it is in no group with others that have the same joins; empty if there are none.
        needs: what a query needs of those before it to see what windows hold already (J6).
        not_backfilled: why none of its queries can; empty if they can.
    """

    number: int
    shards: ShardSpec
    home: int | None
    template: QueryTemplate
    reason: str = ""
    group: int | None = None
    joins: Mapping[str, str] = field(default_factory=dict)
    apart: str = ""
    needs: tuple[Need, ...] = ()
    not_backfilled: str = ""

    @property
    def is_open(self) -> bool:
        """Whether queries may join at any time, each with its own `since`."""
        return not self.template.one_since

    @cached_property
    def held(self) -> str:
        """A name of what its shards hold; other static data must not change it while queries run."""
        text = f"{self.home} {self.shards.plan.held}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that its queries read."""
        return self.shards.plan.matching.streams


@final
@dataclass(frozen=True)
class NetworkSpec:
    """What a worker makes the shards of a network from: `base.StageSpec`.

    Attributes:
        timing: delays and idle times of the streams.
        shards: the numbers of the shards.
        letters: whether to write dead letters about late statements.
        most_held: how many mappings the queries of one template may hold in a shard.
        templates: the templates that shards may have to make, by number. It grows in place as
            templates come, in the driver and in each worker.
    """

    timing: StreamTiming = field(default_factory=StreamTiming)
    shards: tuple[int, ...] = ()
    letters: bool = False
    most_held: int | None = None
    templates: dict[int, TemplateSpec] = field(default_factory=dict)

    @property
    def stage(self) -> int:
        return 0

    @property
    def sends(self) -> bool:
        return False

    @property
    def output(self) -> StructType:
        return OUTPUT

    @property
    def facts(self) -> Mapping[str, Fold]:
        return NETWORK_FACTS

    def stages(self, keys: Sequence[tuple[int, ...]]) -> list[NetworkSpec]:
        """Return the only stage."""
        return [replace(self, shards=keys[0])]

    def host(self, key: int) -> HostedNetwork:
        from quadweir.runtime.network.hosted import HostedNetwork

        return HostedNetwork(self, key)

    def grow(self, parts: Iterable[object]) -> None:
        """Take templates that are new, and drop those of which only the number is given."""
        for each in parts:
            if isinstance(each, TemplateSpec):
                self.templates[each.number] = each
            elif isinstance(each, int):
                self.templates.pop(each, None)

    def counted(self, batches: Sequence[pa.RecordBatch]) -> Counts:
        rows_of = sum(each.num_rows for each in batches)
        letters = sum(len(each) - each.column(LETTER).null_count for each in batches)
        return Counts(rows_of - letters, letters)
