"""Fixtures and options of all tests: the Spark session, the suites, the golden option."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from browser import Browser, running_browser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPO = Path(__file__).resolve().parent.parent

settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True)
settings.register_profile(
    "long", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("QUADWEIR_HYPOTHESIS", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files from what is now"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use the session, so that the other process never starts a second one."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def suites() -> Path:
    """The folder of public conformance suites; the test skips where it is absent."""
    folder = Path(os.environ.get("QUADWEIR_SUITES", REPO.parent / "shared" / "conformance"))
    if not folder.is_dir():
        pytest.skip(f"no conformance suites at {folder}; set QUADWEIR_SUITES")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the run: starting one takes seconds."""
    from quadweir.runtime.spark.session import build

    with pytest.MonkeyPatch.context() as patch:
        # Code of a test runs a few times only. Java's optimising compiler takes more of the cores
        # than it gives back: without it, 56 cases of RML took 31 s instead of 40 s.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
        session = build(master="local[2]", shards=2, app_name="quadweir-tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The one Chromium of the run; its tests skip where it is not installed."""
    with running_browser() as one:
        yield one
