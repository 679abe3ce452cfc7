"""Static relations that are divided among shards: which ones, why not the others, the same
answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import small_lsbench
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.plan.describe import describe
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from query_hosts import Host, facts_over, run_bounded, spec_of
from streaming import quads, stream

HEAD = "SELECT ?x ?z FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.02S] WHERE "
INSIDE = "WINDOW <urn:w> { ?x <urn:p> ?y }"
DIVIDED = f"{HEAD} {{ {INSIDE} ?x <urn:r> ?z }}"
WHOLE = f"{HEAD} {{ {INSIDE} ?y <urn:r> ?z }}"
BOTH = f"{HEAD} {{ {{ {INSIDE} ?x <urn:r> ?z }} UNION {{ {INSIDE} ?y <urn:r> ?z }} }}"
STATIC = quads(" . ".join(f"a{n} r c{n % 3} . b{n} r d{n}" for n in range(12)))
FEED = stream(*((5 * n, f"a{n % 12} p b{n % 5}") for n in range(40)))


def described(text: str, static: Sequence[Quad]) -> str:
    """The description of a query's plan over static data."""
    query = optimize(parse(text)).query
    facts, _ = facts_over(query, static, ("urn:s", "urn:t"))
    return describe(spec_of(text, static=static).plan, facts=facts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DIVIDED, "each in the shard of its ?x"),
        (WHOLE, "all in every shard: it has no ?x"),
        (BOTH, "all in every shard: some of its rows have no ?x"),
    ],
)
def test_a_plan_says_of_each_relation_where_its_rows_are_and_why(text: str, said: str) -> None:
    assert said in described(text, STATIC)


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


# --- where C-SPARQL matches windows and static data as one graph (A1) -----------------------------

FROM = "FROM <urn:g> FROM STREAM <urn:s> [RANGE 30ms STEP 10ms] WHERE"
MERGED = {
    "one pattern": f"SELECT ?x ?y {FROM} {{ ?x <urn:p> ?y }}",
    "any predicate": f"SELECT ?x ?v ?y {FROM} {{ ?x ?v ?y }}",
    "a join by the key": f"SELECT ?x ?y ?z {FROM} {{ ?x <urn:p> ?y . ?x <urn:r> ?z }}",
    "a join": f"SELECT ?x ?z {FROM} {{ ?x <urn:p> ?y . ?y <urn:r> ?z }}",
    "a triangle": f"SELECT ?z ?x {FROM} {{ ?x <urn:p> ?y . ?y <urn:r> ?z . ?z <urn:o> ?x }}",
    "a group": f"SELECT ?y (COUNT(*) AS ?n) {FROM} {{ ?x <urn:p> ?y }} GROUP BY ?y",
    "two stages": f"SELECT (COUNT(*) AS ?n) {FROM} {{ ?x <urn:p> ?y . ?x <urn:r> ?z }}",
    "distinct": f"SELECT DISTINCT ?y {FROM} {{ ?x <urn:p> ?y . ?x <urn:r> ?z }}",
    "minus what shares nothing": f"SELECT (COUNT(*) AS ?n) {FROM} "
    "{ ?x <urn:p> ?y . ?x <urn:r> ?z MINUS { <urn:a0> <urn:p> ?o } }",
    "optional": f"SELECT ?x ?y ?z {FROM} {{ ?x <urn:p> ?y OPTIONAL {{ ?x <urn:r> ?z }} }}",
    "not exists": f"SELECT ?x ?y {FROM} {{ ?x <urn:p> ?y FILTER NOT EXISTS {{ ?x <urn:r> ?y }} }}",
    "union": f"SELECT ?x ?y {FROM} {{ {{ ?x <urn:p> ?y }} UNION {{ ?x <urn:r> ?y }} }}",
    "graphs by name": "SELECT ?g ?x ?y FROM NAMED <urn:g> FROM NAMED <urn:h> "
    "FROM NAMED STREAM <urn:s> [RANGE 30ms STEP 10ms] WHERE { GRAPH ?g { ?x <urn:p> ?y } }",
}
# Every third triple of the stream is in static data too, and there once (W8).
IN_BOTH = " . ".join(f"a{n} p b{n % 5} . a{n} r b{n}" for n in range(0, 12, 3))
GRAPHS = (
    *quads(f"{IN_BOTH} . b0 r c . b3 r d . c o a0 . d o a3 . d o a8 . z p z . z r z", "g"),
    *quads("a0 p b0 . y p y", "h"),
)


@pytest.mark.parametrize("output", OutputOperator)
@pytest.mark.parametrize("content", Content)
@pytest.mark.parametrize("text", MERGED.values(), ids=MERGED)
def test_windows_and_static_data_matched_as_one_are_sharded(
    text: str, content: Content, output: OutputOperator
) -> None:
    query = replace(parse(text, dialect="csparql", content=content), output=output)
    expected = Oracle(query, static=GRAPHS).answers(FEED)
    assert expected
    for shards in (1, 2, 5):
        host = Host(query, static=GRAPHS, shards=shards, direct=True)
        assert host.shards == shards
        for start in range(0, len(FEED), 7):
            host.push(FEED[start : start + 7])
            host.restart()
        host.finish()
        assert diff_answers(expected, host.answers) == "", shards


def test_a_plan_says_how_static_data_is_matched_with_windows() -> None:
    some = described(MERGED["a join by the key"], GRAPHS)
    assert "?x ?y  5 rows, each in the shard of its ?x, as the rows of windows that they" in some
    nothing = quads("a is b", "g")
    assert "static" not in described(MERGED["a join by the key"], nothing)
    apart = f"SELECT ?x {FROM} {{ {{ ?x <urn:p> ?y }} UNION {{ ?z <urn:r> ?w }} }}"
    assert "rows with and without ?x are put together" in described(apart, nothing)


def test_where_rows_lie_does_not_depend_on_what_static_data_has() -> None:
    """Else it could not be reloaded."""
    for text in MERGED.values():
        query = parse(text)
        none = (*quads("a is b", "g"), *quads("a is b", "h"))
        for before, after in ((none, GRAPHS), (GRAPHS, none)):
            old = spec_of(query, static=before).plan
            assert spec_of(query, static=after, like=old.layout).plan.held == old.held


def test_what_comes_from_streams_alone_is_divided_rather_than_sent_to_every_shard() -> None:
    """Of the triangle static data has two sides: the third has no ?z, which else would do as well."""
    query = parse(MERGED["a triangle"])
    data = (quads("a is b", "g"), quads("b0 r c . c o a0 . c o a1", "g"))
    none, some = (spec_of(query, static=each).plan for each in data)
    assert none.layout == "by ?z, matches 0 in every shard"
    assert some.layout == "by ?x, matches 1 in every shard"
    assert "sharded by it, the others, which static data matches too, go" in some.first.reason
    said = described(MERGED["a triangle"], data[1])
    assert "?x ?z  2 rows, each in the shard of its ?x" in said
    assert "?y ?z  1 rows, all in every shard: it has no ?x" in said


LSBENCH = Path(__file__).parents[3] / "src/quadweir/bench/queries/lsbench/csparql"


@pytest.mark.parametrize("path", sorted(LSBENCH.glob("*.rq")), ids=lambda path: path.stem)
def test_every_lsbench_query_in_csparql_runs_in_shards(path: Path) -> None:
    query = parse(path.read_text(encoding="utf-8"))
    static, feed = small_lsbench.static_by_name(), small_lsbench.feed(posts=16)
    expected = Oracle(query, static=static).answers(feed)
    assert expected
    streams = sorted({each.stream for each in feed})
    for shards in (2, 5):
        host = Host(query, static=static, streams=streams, shards=shards, direct=True)
        assert host.shards == shards
        for start in range(0, len(feed), 20):
            host.push(feed[start : start + 20])
        host.finish()
        assert diff_answers(expected, host.answers) == "", shards
