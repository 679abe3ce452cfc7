"""Kafka as a source of records and of RDF elements, through Spark's own connector."""

from __future__ import annotations

from pathlib import Path


def connector_jars() -> list[Path]:
    """The jars of Spark's Kafka connector, where `make kafka` has fetched them; else none."""
    return []
