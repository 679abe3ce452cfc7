"""A live query that sees much on all sides and answers nothing says so, once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.runtime import silence
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.match.sentences import asked_patterns
from quadweir.runtime.silence import SilenceWatch
from quadweir.syntax.read import parse

JOIN = (
    "SELECT ?x { STREAM <urn:s> [RANGE 10s] { ?x <urn:p> ?v } "
    "STREAM <urn:t> [RANGE 1m] { ?y <urn:q> ?x } }"
)


def planned(text: str) -> QueryPlan:
    return plan_query(optimize(parse(text)).query, streams=())


def batch(plan: QueryPlan, column: str, values: dict[int, list[str]]) -> pa.RecordBatch:
    """Rows that pass the tests of patterns, by their numbers, with values in a column."""
    patterns = asked_patterns(plan)
    words, texts = [], []
    for number, found in values.items():
        word = sum(1 << word_of(test)[1] for test in patterns[number].tests)
        words += [word] * len(found)
        texts += found
    return pa.record_batch({"passed0": pa.array(words), column: pa.array(texts)})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "MANY", 3)


def end(watch: SilenceWatch, **facts: int | None) -> None:
    watch.end(0, {"answers": 0, "through": None, **facts})


def test_it_says_what_each_side_has_and_says_it_once(few: None) -> None:
    plan, said = planned(JOIN), []
    watch = SilenceWatch(plan, 2, said.append)
    watch.see(batch(plan, "value0", {0: ["<urn:a>", "<urn:b>", "<urn:a>"]}))
    end(watch)
    assert said == [], "the other side has nothing"
    watch.see(batch(plan, "value2", {1: ["<urn:A>", "<urn:B>", "<urn:C>", "<urn:D>"]}))
    end(watch)
    end(watch)
    (text,) = said
    assert text.startswith("no answers after 2 batches, though every pattern has matches: ")
    assert "nothing joins on ?x or nothing passes FILTER and HAVING" in text
    assert "?x <urn:p> ?v over <urn:s>: 3 matches, such as <urn:a>, <urn:b>" in text
    assert "?y <urn:q> ?x over <urn:t>: 4 matches, such as <urn:A>, <urn:B>, <urn:C>" in text
    assert watch.said == text


def test_an_answer_ends_the_watch(few: None) -> None:
    plan, said = planned(JOIN), []
    watch = SilenceWatch(plan, 2, said.append)
    watch.see(batch(plan, "value0", {0: ["<urn:a>"] * 5, 1: ["<urn:b>"] * 5}))
    end(watch, answers=1)
    end(watch)
    assert said == []


def test_a_window_that_was_not_reported_yet_is_not_silent(few: None) -> None:
    count = JOIN.replace("SELECT ?x", "SELECT (COUNT(*) AS ?n)") + " HAVING (COUNT(*) > 5)"
    plan, said = planned(count), []
    watch = SilenceWatch(plan, 2, said.append)
    assert not plan.eager
    watch.see(batch(plan, "value0", {0: ["<urn:a>"] * 5, 1: ["<urn:b>"] * 5}))
    for through in (None, 1_000, 61_000, 121_000):
        end(watch, through=through)
        assert said == []
    end(watch, through=121_001)
    assert len(said) == 1


def test_ever_fewer_batches_are_looked_at(few: None) -> None:
    plan = planned(JOIN)
    watch = SilenceWatch(plan, 2, print)
    looked = []
    for number in range(20):
        if watch.begin(number).match.__name__ == "_look":
            looked.append(number)
        end(watch)
    assert looked == [2, 4, 8, 16]


def test_the_warning_goes_to_standard_error(few: None, capsys: pytest.CaptureFixture[str]) -> None:
    silence.warn("it is silent")
    assert capsys.readouterr().err == "quadweir: warning: it is silent\n"
