"""A service that is killed between any two requests: what it acknowledged is there, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from service_client import TIMEOUT, path_of, served

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPO = Path(__file__).parents[2]
QUERY = "SELECT ?n { STREAM <urn:s> [NOW] { <urn:a> <urn:%s> ?n } }"
KILLS = int(os.environ.get("QUADWEIR_FAULTS") == "long") * 18 + 2


@contextmanager
def process_over(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Start a service, and kill it in the end."""
    (folder / "address").unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, REPO / "tests" / "killed_service.py", folder],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 300
        while not (folder / "address").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "the service does not become ready"
            wait_a_little(process)
        with httpx.Client(base_url=(folder / "address").read_text(), timeout=TIMEOUT) as http:
            yield process, http
    finally:
        kill(process)


def wait_a_little(process: subprocess.Popen[bytes]) -> None:
    """Wait for a moment, or for the end of the process."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.2)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def test_what_was_acknowledged_is_there_after_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(5)
    queries: set[str] = set()
    streams: set[str] = set()
    pushed: list[int] = []
    tried = 0
    for round_ in range(KILLS):
        with process_over(tmp_path) as (process, http):
            if not streams:
                assert http.put(path_of("urn:s")).status_code == 201
                streams.add("urn:s")
                assert http.put("/queries/all", json={"text": QUERY % "p"}).status_code == 201
                queries.add("all")
            left = dice.randrange(4, 12)
            while True:
                left -= 1
                if not left:
                    # In the middle of a request: whether it counts is not known.
                    process.send_signal(signal.SIGKILL)
                try:
                    match dice.randrange(4):
                        case 0:
                            name = f"q{round_}.{left}"
                            text = {"text": QUERY % f"p{left}"}
                            http.put(f"/queries/{name}", json=text).raise_for_status()
                            queries.add(name)
                        case 1:
                            iri = f"urn:s{round_}.{left}"
                            http.put(path_of(iri)).raise_for_status()
                            streams.add(iri)
                        case _:
                            tried += 1
                            push(http, tried)
                            pushed.append(tried)
                except httpx.TransportError:
                    break
    with served(spark, tmp_path / "data") as again:
        found = again.http.get("/queries").json()["queries"]
        assert queries <= {each["name"] for each in found}
        assert streams <= {each["iri"] for each in again.http.get("/streams").json()["streams"]}
        # A client that heard nothing repeats what it pushed; the keys keep that from counting twice.
        for number in range(1, tried + 1):
            push(again.http, number)
        push(again.http, tried + 1)
        seen = []
        with again.events("/queries/all/answers?from=start") as events:
            for event in events:
                seen.append(int(event["data"]["bindings"]["n"]["value"]))
                if seen[-1] == tried + 1:
                    break
    assert sorted(seen) == list(range(1, tried + 2))
    assert set(pushed) <= set(seen)


def push(http: httpx.Client, number: int) -> dict[str, Any]:
    """Push a number, with a key of its own."""
    headers = {"content-type": "text/turtle", "idempotency-key": f"n{number}"}
    found = http.post(path_of("urn:s"), content=f"<urn:a> <urn:p> {number} .", headers=headers)
    assert found.status_code == 202, found.text
    answer: dict[str, Any] = json.loads(found.text)
    return answer
