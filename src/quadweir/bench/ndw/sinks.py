"""Sinks for joined records in a measurement: they collect, time, or only count.

All take quads whose subject and object end in `/NUMBER/SENT` of their records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F

from quadweir import rows
from quadweir.sinks.base import Sink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.bench.ndw.publisher import Ints
    from quadweir.sinks.base import Batch


def pair_codes(quads: DataFrame) -> Ints:
    """Each pair as one number: the child's in the upper half, the parent's in the lower."""
    code = F.shiftleft(_part(rows.SUBJECT, 2), 32).bitwiseOR(_part(rows.OBJECT, 2))
    return _column(quads.select(code.alias("code")))


def _part(term: str, place: int) -> Column:
    """A number at the end of an IRI; null if there is none."""
    inner = F.substring_index(F.rtrim(F.col(term), F.lit(">")), "/", -place)
    return F.substring_index(inner, "/", 1).try_cast("bigint")


def _column(frame: DataFrame) -> Ints:
    table = frame.toArrow()
    return np.asarray(table.column(0).to_numpy(), dtype=np.int64)


@final
@dataclass(slots=True)
class PairSink(Sink):
    """Collects the pairs of records that met."""

    parts: list[Ints] = field(default_factory=list)

    def write(self, frame: DataFrame, batch: Batch) -> None:  # noqa: ARG002
        self.parts.append(pair_codes(frame))

    @property
    def codes(self) -> Ints:
        return np.concatenate(self.parts) if self.parts else np.empty(0, dtype=np.int64)


@final
@dataclass(slots=True)
class LatencySink(Sink):
    """Records when each result was written, and when the later of its records was sent.

    Attributes:
        sent: times of sending, one for each result.
        emitted: when the results of its batch were written.
    """

    now: Callable[[], float] = time.time
    sent: list[Ints] = field(default_factory=list)
    emitted: list[float] = field(default_factory=list)

    def write(self, frame: DataFrame, batch: Batch) -> None:  # noqa: ARG002
        latest = F.greatest(_part(rows.SUBJECT, 1), _part(rows.OBJECT, 1))
        found = _column(frame.select(latest.alias("sent")))
        self.sent.append(found)
        self.emitted.append(1000 * self.now())

    @property
    def count(self) -> int:
        return sum(map(len, self.sent))

    def latencies(self) -> tuple[Ints, npt.NDArray[np.float64]]:
        """When each result's later record was sent, and how long it took, in milliseconds."""
        if not self.count:
            return np.empty(0, dtype=np.int64), np.empty(0)
        sent = np.concatenate(self.sent)
        emitted = np.repeat(np.array(self.emitted), [len(each) for each in self.sent])
        return sent, emitted - sent


@final
@dataclass(slots=True)
class CountSink(Sink):
    """Computes every result and adds its hash to a sum: equal sums mean equal results."""

    count: int = 0
    digest: int = 0

    def write(self, frame: DataFrame, batch: Batch) -> None:  # noqa: ARG002
        hashed = F.xxhash64(rows.SUBJECT, rows.PREDICATE, rows.OBJECT)
        # A sum must not overflow: 32 bits leave room for thousands of millions of results.
        share = F.sum(F.shiftright(hashed, 32))
        row: Any = frame.agg(F.count(F.lit(1)).alias("n"), share.alias("digest")).first()
        self.count += row["n"]
        self.digest += row["digest"] or 0
