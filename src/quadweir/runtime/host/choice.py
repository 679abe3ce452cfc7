"""Which host runs a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadweir.errors import UsageError
from quadweir.runtime.checkpoint import DRIVER, EXECUTORS, Fingerprint
from quadweir.runtime.host import pool
from quadweir.runtime.host.executors import Executors
from quadweir.runtime.host.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from quadweir.runtime.host.base import Host

HOSTS: Final[Mapping[str, Host]] = {DRIVER: Processes(), EXECUTORS: Executors()}
"""The hosts for streams that go on, by their names."""


def usual_host(spark: SparkSession) -> Host:
    """Return the host for a new query: worker processes if all of Spark is on one machine."""
    return HOSTS[DRIVER if is_on_one_machine(spark) else EXECUTORS]


def choose_host(spark: SparkSession, asked: str | None, known: Fingerprint | None) -> Host:
    """Return the host for a run.

    Args:
        spark: the session.
        asked: the name of the host that the user asked for, if any.
        known: what the checkpoint says, if it is not new.

    Raises:
        UsageError: there is no such host, or it cannot run here.
    """
    is_alone = is_on_one_machine(spark)
    if asked is None:
        # A checkpoint with state of local workers is refused on a cluster, later and with reasons.
        if not is_alone:
            return HOSTS[EXECUTORS]
        if known is not None:
            return HOSTS[known.shards_in]
        return HOSTS[EXECUTORS if pool.are_many() else DRIVER]
    if asked not in HOSTS:
        raise UsageError(f"shards cannot be in {asked!r}", hint=f"Choose {DRIVER} or {EXECUTORS}.")
    if asked == DRIVER and not is_alone:
        raise UsageError(
            "shards in local worker processes need all of Spark on one machine",
            hint=f"Choose {EXECUTORS}, or the master local[*].",
        )
    return HOSTS[asked]


def host_of_joins(spark: SparkSession, checkpoint: Path) -> Host:
    """Return the host for the joins of a live mapping."""
    # In older checkpoints, the state of joins is in Spark's state store.
    return HOSTS[EXECUTORS] if (checkpoint / "state").is_dir() else usual_host(spark)


def is_on_one_machine(spark: SparkSession) -> bool:
    """Return whether all of Spark is on one machine."""
    master = str(spark.sparkContext.master)
    return master.startswith("local") and not master.startswith("local-cluster")
