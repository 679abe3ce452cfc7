"""Closes without anything to say are not gone through one by one."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest

from quadweir.errors import LimitError
from quadweir.kernel import instants
from quadweir.kernel.shard import Shard
from quadweir.syntax import parse
from quadweir.testing import Answer, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import stream

TEN_YEARS_MS = 10 * 365 * 86_400_000
RSPQL = """SELECT %s ?x %s
FROM NAMED WINDOW <urn:w> ON STREAM <urn:s> [RANGE 3s STEP 1s]
WHERE { WINDOW <urn:w> { ?x <urn:p> ?y } } %s"""
CSPARQL = """SELECT (COUNT(*) AS ?n) FROM STREAM <urn:s> [RANGE 3s STEP 1s]
WHERE { ?x <urn:p> ?y }"""
TOTAL = RSPQL.replace("?x %s", "(COUNT(*) AS ?n)") % ("RSTREAM", "")
RECOMPUTED = "?y FILTER(EXISTS { ?x <urn:none> ?z } || ?x = ?x) }"
QUERIES = {
    "rstream": RSPQL % ("RSTREAM", "", ""),
    "istream": RSPQL % ("ISTREAM", "", ""),
    "dstream": RSPQL % ("DSTREAM", "", ""),
    "groups": RSPQL % ("RSTREAM", "(COUNT(*) AS ?n)", "GROUP BY ?x"),
    "totals that come": TOTAL.replace("RSTREAM", "ISTREAM"),
    "csparql": CSPARQL,
    "recomputed": (RSPQL % ("RSTREAM", "", "")).replace("?y }", RECOMPUTED),
    "recomputed that come": (RSPQL % ("ISTREAM", "", "")).replace("?y }", RECOMPUTED),
}


def answers(text: str, gap_ms: int, *, size: int) -> list[Answer]:
    query = parse(text)
    feed = stream(
        (1_500, "a p 1"), (2_500, "b p 1"), (gap_ms + 500, "c p 1"), (gap_ms + 2_000, "d p 1")
    )
    shard = ShardFeed(Shard.of(query))
    found = []
    for start in range(0, len(feed), size):
        found += as_answers(shard.push(feed[start : start + size]), query)
    return found + as_answers(shard.finish(), query)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_a_jump_of_ten_years_is_answered_like_a_short_one(text: str, size: int) -> None:
    query = parse(text)
    short = stream((1_500, "a p 1"), (2_500, "b p 1"), (20_500, "c p 1"), (22_000, "d p 1"))
    wanted = Oracle(query).answers(short)
    assert wanted
    assert diff_answers(wanted, answers(text, 20_000, size=size)) == ""
    far = [
        replace(each, t=each.t if each.t < 15_000 else each.t + 20_000 - TEN_YEARS_MS)
        for each in answers(text, TEN_YEARS_MS, size=size)
    ]
    assert diff_answers(wanted, far) == ""


def test_reports_that_all_have_an_answer_are_limited() -> None:
    """A total over empty windows is 0 at every close: that is what was asked for."""
    with mock.patch.object(instants, "MAX_CLOSES", 1_000), pytest.raises(LimitError, match="1000"):
        answers(TOTAL, 200_000_000, size=4)
