"""A5, the part about DESCRIBE: which triples describe a resource, and when they go out."""

import pytest

from quadweir.algebra.analyze import analyze, state_bounds
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import evaluate
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.syntax.write import write
from quadweir.testing import Oracle
from quadweir.testing.contents import OpenWindow
from streaming import quads, stream

WINDOW = "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 10ms STEP 1ms]"
CSPARQL = "FROM STREAM <urn:s> [RANGE 10ms STEP 1ms]"
FEED = stream((1, "a p 1"), (2, "a q b"), (3, "b p 2"), (3, "a p 1"))


def rspql(targets="?x", body="WINDOW <urn:w> { ?x <urn:p> ?y }", output="RSTREAM", tail="", **more):
    text = f"REGISTER {output} q AS DESCRIBE {targets} {WINDOW} {{ {body} }} {tail}"
    return parse(text, dialect="rspql", **more)


def at(t, asked, feed=FEED, static=()):
    """List the answers at t, each as its triples in words."""
    found = Oracle(asked, static=static).answers(feed)
    return [_words(answer.graph) for answer in found if answer.t == t]


def _words(graph):
    lines = (f"{q.subject} {q.predicate} {q.object}" for q in graph)
    plain = (line.replace("<urn:", "").replace(">", "").replace('"', "") for line in lines)
    return " . ".join(sorted(line.partition("^^")[0] for line in plain))


def test_A5_describe_gives_the_triples_of_each_resource():
    assert at(1, rspql()) == ["a p 1"]
    assert at(2, rspql()) == ["a p 1 . a q b"]
    # Each resource once, however many solutions and elements there are.
    assert at(3, rspql()) == ["a p 1 . a q b", "b p 2"]
    for content in Content:
        assert at(3, rspql(content=content)) == ["a p 1 . a q b", "b p 2"]


def test_A5_describe_looks_at_the_default_graph_and_at_all_windows():
    two = "FROM NAMED WINDOW <urn:v> ON <urn:other> [RANGE 10ms STEP 1ms]"
    asked = parse(
        f"DESCRIBE ?x {WINDOW} {two} {{ WINDOW <urn:w> {{ ?x <urn:p> ?y }} }}", dialect="rspql"
    )
    feed = stream((1, "a p 1")) + stream((1, "a r 5 . c r 6"), name="other")
    static = (*quads("a name 7"), *quads("a hidden 8", "g"))
    assert at(1, asked, feed, static) == ["a name 7 . a p 1 . a r 5"]
    assert set(analyze(asked).windows_read) == {window.name for window in asked.windows}


def test_A5_describe_follows_blank_nodes_and_stops():
    feed = stream((1, "a p _:b . _:b p _:c . _:c p _:b . _:c q d . d q 1 . e q _:b"))
    (found,) = at(1, rspql("<urn:a>", ""), feed)
    assert found.count(" . ") == 3
    assert "e q" not in found
    assert "d q" not in found


def test_A5_what_is_said_of_no_resource_is_no_answer():
    # A literal, an unbound variable, a resource that nothing is said about.
    assert at(1, rspql("?y ?none <urn:nobody>")) == []
    assert at(1, rspql("<urn:a> ?x")) == ["a p 1"]


def test_A5_istream_gives_new_and_changed_descriptions():
    asked = rspql(output="ISTREAM")
    assert at(1, asked) == ["a p 1"]
    assert at(2, asked) == ["a p 1 . a q b"]
    assert at(3, asked) == ["b p 2"]
    assert at(4, asked) == []
    # At 12 `a q b` has left: the description of a is another one.
    assert at(12, asked) == ["a p 1"]


def test_A5_dstream_gives_descriptions_that_no_longer_hold():
    asked = rspql(output="DSTREAM")
    assert at(2, asked) == ["a p 1"]
    assert at(3, asked) == []
    assert at(13, asked) == ["a p 1", "b p 2"]
    assert {answer.sign for answer in Oracle(asked).answers(FEED)} == {"-"}


def test_A5_limit_counts_solutions_not_resources():
    assert at(3, rspql(body="WINDOW <urn:w> { ?x ?p ?y }", tail="ORDER BY ?x LIMIT 2")) == [
        "a p 1 . a q b"
    ]
    assert at(3, rspql(tail="ORDER BY DESC(?x)")) == ["b p 2", "a p 1 . a q b"]


def test_A1_a_csparql_describe_sees_its_windows_and_from_alone():
    static = (*quads("a name 7"), *quads("a age 8", "g"))
    alone = parse(f"DESCRIBE ?x {CSPARQL} {{ ?x <urn:p> ?y }}", dialect="csparql")
    assert at(1, alone, static=static) == ["a p 1"]
    named = parse(f"DESCRIBE ?x {CSPARQL} FROM <urn:g> {{ ?x <urn:p> ?y }}", dialect="csparql")
    assert at(1, named, static=static) == ["a age 8 . a p 1"]


QUERIES = {
    "rspql": rspql(),
    "constant": rspql("<urn:b> ?x", "WINDOW <urn:w> { ?x ?p ?y FILTER(?y != 2 && 1 < 2) }"),
    "cqels": parse("DESCRIBE ?x { STREAM <urn:s> [RANGE 10ms] { ?x <urn:p> ?y } ?x <urn:r> ?z }"),
    "csparql": parse(f"DESCRIBE ?x {CSPARQL} {{ ?x <urn:p> ?y }}", dialect="csparql"),
}
STATIC = quads("a r c . a name 7 . b r 1 . x r 1")


@pytest.mark.parametrize("asked", QUERIES.values(), ids=QUERIES)
def test_the_evaluator_says_the_same(asked):
    from dataclasses import replace

    asked = replace(asked, output=OutputOperator.RSTREAM)
    (window,) = asked.windows
    optimized = optimize(asked).query
    seen = 0
    for t in Oracle(asked, static=STATIC).run(FEED).reports:
        contents = {window.name: OpenWindow(window, window.stream, tuple(FEED)).content(t)}
        expected = at(t, asked, static=STATIC)
        for query in (asked, optimized):
            found = evaluate(query, Dataset.of(STATIC), windows=contents)
            # It gives all descriptions together.
            together = {triple for each in expected for triple in each.split(" . ")}
            assert {_words([quad]) for quad in found} == together
        seen += len(expected)
    assert seen > 3


def test_all_has_to_be_kept_to_describe_from_it():
    asked = parse("DESCRIBE ?x { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } }")
    assert not state_bounds(asked)[0].bounded
    counted = parse(
        "DESCRIBE <urn:a> { { SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } } } }"
    )
    assert not state_bounds(counted)[0].bounded


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@pytest.mark.parametrize("asked", QUERIES.values(), ids=QUERIES)
def test_descriptions_are_translated(asked, dialect):
    from dataclasses import replace

    written = write(asked, dialect)
    again = parse(written.text, dialect=dialect, content=asked.windows[0].content)
    same = {"output": OutputOperator.RSTREAM, "report": asked.report}
    expected = Oracle(replace(asked, **same), static=STATIC).answers(FEED)
    found = Oracle(replace(again, **same), static=STATIC).answers(FEED)
    aspects = {warning.aspect for warning in written.warnings}
    if "step" in aspects:
        return  # its report instants are others
    # Where the text describes more than the query did, it says so.
    assert (found == expected) == ("merged-default-graph" not in aspects)
