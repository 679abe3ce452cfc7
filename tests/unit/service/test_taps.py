"""Windows, reasons and verification, from what taps kept; no network runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quadweir.errors import UsageError
from quadweir.runtime.network.querytext import QueryText
from quadweir.service.answerring import AnswerRing
from quadweir.service.problems import NotFoundError
from quadweir.service.taps import StreamTaps, tap_name
from quadweir.sources.statements import parse_statement
from quadweir.sources.streamfiles import Element
from quadweir.testing.oracle import Oracle

TEXT = "SELECT ?x ?y { STREAM <urn:s> [RANGE 10ms] { ?x <urn:p> ?y } }"
STATEMENTS = [(t, f"<urn:a{t % 3}> <urn:p> <urn:b{t % 5}> .") for t in range(1_000, 1_200, 3)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SimpleNamespace]:
    ring, taps = AnswerRing(tmp_path / "answers"), AnswerRing(tmp_path / "taps")
    texts = {"q": TEXT, "made": TEXT.replace("SELECT ?x ?y", "CONSTRUCT { ?x <urn:r> ?y }")}
    yield SimpleNamespace(
        ring=ring,
        ring_of=lambda name: taps if name.startswith("_") else ring,
        metrics=lambda: {"through": STATEMENTS[-1][0]},
        query=lambda name: SimpleNamespace(text=QueryText(texts[name])),
        taps=taps,
    )
    ring.close()
    taps.close()


@pytest.fixture
def taps(home: SimpleNamespace) -> StreamTaps:
    name = tap_name("urn:s")
    lines = [
        json.dumps({"query": name, "t": t, "sign": "+", "graph": [text]}, separators=(",", ":"))
        for t, text in STATEMENTS
    ]
    home.taps.add(lines, 0)
    pool: Any = SimpleNamespace(has=lambda _name: True, home_of=lambda _name: home)
    known = frozenset({"urn:s"})
    return StreamTaps(pool, lambda: known, lambda: (), lambda: None, lambda _name: False)


def give(home: SimpleNamespace, *, without: int = 0) -> None:
    """Let the query give the right answers, without some of the last."""
    elements = [
        Element("urn:s", t, place, (parse_statement(text),))
        for place, (t, text) in enumerate(STATEMENTS)
    ]
    answers = Oracle(TEXT).answers(elements)
    lines = [
        json.dumps({"query": "q", **answer.to_json()}, separators=(",", ":")) for answer in answers
    ]
    home.ring.add(lines[: len(lines) - without], 0)


def test_right_answers_are_verified(taps: StreamTaps, home: SimpleNamespace) -> None:
    give(home)
    found = taps.verify("q")
    assert found["reports"] > 5
    assert found["difference"] is None


def test_an_answer_that_is_missing_is_found(taps: StreamTaps, home: SimpleNamespace) -> None:
    give(home, without=40)
    found = taps.verify("q")
    assert "missing" in found["difference"]


def test_without_answers_nothing_is_compared(taps: StreamTaps) -> None:
    assert taps.verify("q")["reports"] == 0
    with pytest.raises(UsageError):
        taps.verify("made")


def test_windows_hold_what_is_in_their_scope(taps: StreamTaps) -> None:
    found = taps.windows("q")
    assert (found["at"], found["complete"]) == (STATEMENTS[-1][0], True)
    (window,) = found["windows"]
    assert window["count"] == 4
    assert window["newest"][0] == {"t": STATEMENTS[-1][0], "statement": STATEMENTS[-1][1]}


def test_an_answer_has_its_elements(taps: StreamTaps) -> None:
    t, text = STATEMENTS[-1]
    subject, _, end, _ = text.split(" ")
    bindings = {
        "x": {"type": "uri", "value": subject.strip("<>")},
        "y": {"type": "uri", "value": end.strip("<>")},
    }
    found = taps.why("q", {"t": t, "sign": "+", "bindings": bindings})
    assert found["complete"]
    assert found["triples"][0]["triple"] == text
    assert found["triples"][0]["elements"][0]["time"] == t
    for answer in (
        {},
        {"t": 1, "sign": "+", "bindings": []},
        {"t": 1, "sign": "+", "bindings": {"x": 1}},
    ):
        with pytest.raises(UsageError):
            taps.why("q", answer)


def test_only_streams_that_are_known_are_looked_into(taps: StreamTaps) -> None:
    with pytest.raises(NotFoundError):
        taps.open("urn:other")
