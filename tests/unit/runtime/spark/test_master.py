"""A master that cannot be is refused before Java starts."""

from __future__ import annotations

import socket

import pytest

from quadweir.errors import EnvironmentProblem, UsageError
from quadweir.runtime.spark import java
from quadweir.runtime.spark.master import check_master
from quadweir.runtime.spark.session import build


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2]",
        "local[*,4]",
        "local-cluster[2, 1, 900]",
        "yarn",
        "k8s://https://a:443",
    ],
)
def test_what_spark_knows_is_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["nonsense", "", "local[0]", "local[two]", "spark://", "spark://host"]
)
def test_what_spark_does_not_know_is_refused(master: str) -> None:
    with pytest.raises(UsageError):
        check_master(master)


def test_one_standalone_master_of_several_has_to_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(EnvironmentProblem, match="no Spark master answers at"):
        check_master(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize("name", ["argument", "environment"])
def test_java_is_not_started_for_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(java, "ensure_java", lambda: pytest.fail("Java was looked for"))
    given = None
    if name == "argument":
        given = "nonsense"
    else:
        monkeypatch.setenv("QUADWEIR_MASTER", "nonsense")
    with pytest.raises(UsageError, match="is not a Spark master"):
        build(master=given)
