"""Static relations that shards divide among them: which, why not the others, the same answers."""

from __future__ import annotations

import pytest

from quadweir.plan.describe import describe
from quadweir.syntax.read import parse
from quadweir.testing import Oracle, diff_answers
from query_hosts import Host, run_bounded, spec_of
from streaming import quads, stream

HEAD = "SELECT ?x ?z FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.02S] WHERE "
INSIDE = "WINDOW <urn:w> { ?x <urn:p> ?y }"
DIVIDED = f"{HEAD} {{ {INSIDE} ?x <urn:r> ?z }}"
WHOLE = f"{HEAD} {{ {INSIDE} ?y <urn:r> ?z }}"
BOTH = f"{HEAD} {{ {{ {INSIDE} ?x <urn:r> ?z }} UNION {{ {INSIDE} ?y <urn:r> ?z }} }}"
STATIC = quads(" . ".join(f"a{n} r c{n % 3} . b{n} r d{n}" for n in range(12)))
FEED = stream(*((5 * n, f"a{n % 12} p b{n % 5}") for n in range(40)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DIVIDED, "each in the shard of its ?x"),
        (WHOLE, "all in every shard: it has no ?x"),
        (BOTH, "all in every shard: some of its rows have no ?x"),
    ],
)
def test_a_plan_says_of_each_relation_where_its_rows_are_and_why(text: str, said: str) -> None:
    assert said in describe(spec_of(text, static=STATIC).plan)


def test_each_shard_has_rows_of_its_own_and_all_together_have_all() -> None:
    for text, count in ((DIVIDED, 24), (WHOLE, 72)):
        spec = Host(text, static=STATIC, shards=3).spec
        held = [spec.make(key).held() for key in range(3)]
        assert sum(held) == count
        assert max(held) < 24 or text is WHOLE
        assert len({spec.make(key).fingerprint for key in range(3)}) == (
            3 if text is DIVIDED else 1
        )


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("text", [DIVIDED, WHOLE, BOTH])
def test_answers_do_not_depend_on_it(text: str, shards: int) -> None:
    expected = Oracle(parse(text), static=STATIC).answers(FEED)
    assert expected
    host = Host(text, static=STATIC, shards=shards, direct=True)
    for start in range(0, len(FEED), 7):
        host.push(FEED[start : start + 7])
        host.restart()
    host.finish()
    assert diff_answers(expected, host.answers) == ""
    found = run_bounded(text, FEED, tasks=2, shards=shards, static=STATIC)
    assert diff_answers(expected, found) == ""
