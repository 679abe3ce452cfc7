"""Relation to stream, and when: output operators, report and tick policies.

The rules named R1 to R3, W7 and A2 are those of the semantics page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from quadweir.algebra.node import Node, require


@final
class OutputOperator(Enum):
    """The output operators: which solutions of a report go out (A2).

    Spec: https://streamreasoning.github.io/RSP-QL/RSP_Requirements_Design_Document/
    """

    RSTREAM = "rstream"  # all solutions of this report
    ISTREAM = "istream"  # those not in the report before
    DSTREAM = "dstream"  # those of the report before that are gone


@final
class ReportPolicy(Enum):
    """At which instants a query answers."""

    ON_CHANGE = "on-change"  # the content of some window changes, by arrival or by expiry (R1)
    ON_CLOSE = "on-close"  # some stepped window closes (R2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Node):
    """When a query answers (R1, R2), and whether it keeps silent over empty windows (R3).

    Under both policies a stepped window counts as of its own latest close, and its content
    changes at its closes only; a window without a step counts as of t.
    """

    policy: ReportPolicy
    non_empty_only: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Node):
    """The instants at which a query can report.

    Without `every_ms` each instant at which something arrives or expires is one tick, however
    many elements share it (W7). With it (C-SPARQL's COMPUTED EVERY), the query reports at the
    multiples of `every_ms` and nowhere else, whatever the windows' own close instants; each
    stepped window still counts as of its latest close.
    """

    every_ms: int | None = None

    def __post_init__(self) -> None:
        require(self.every_ms is None or self.every_ms > 0, "a tick must be positive")


ON_CHANGE: Final = Report(policy=ReportPolicy.ON_CHANGE)
ON_CLOSE: Final = Report(policy=ReportPolicy.ON_CLOSE)
EVERY_INSTANT: Final = Tick()
