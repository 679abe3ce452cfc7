"""A1, the part about timestamp(s, p, o): when the windows' latest carrier of a triple happened."""

import pytest

from quadweir.algebra.analyze import analyze, compares_derivations, is_monotonic, state_bounds
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.windows import Content
from quadweir.errors import UnboundedStateError
from quadweir.syntax import parse
from quadweir.terms import Literal
from quadweir.testing import Oracle
from streaming import quads, run, stream

FEED = stream((1, "a p 1"), (3, "a p 1"), (4, "b p 2")) + stream((5, "a p 1 . a q b"), name="other")


def read(select, body, content=None, windows="FROM STREAM <urn:s> [RANGE 10ms STEP 1ms]"):
    text = f"SELECT {select} {windows} {{ {body} }}"
    return parse(text, dialect="csparql", content=content)


def at(t, asked, feed=FEED, static=()):
    """List the answers at t, each in a word or two."""
    found = Oracle(asked, static=static).answers(feed)
    return sorted(
        " ".join(
            term.lexical if isinstance(term, Literal) else term.value.removeprefix("urn:")
            for _, term in answer.solution
        )
        for answer in found
        if answer.t == t
    )


@pytest.mark.parametrize("content", Content)
def test_A1_timestamp_of_a_triple_is_the_time_of_its_latest_carrier(content):
    asked = read("DISTINCT ?x ?t", "?x <urn:p> ?y BIND(timestamp(?x, <urn:p>, ?y) AS ?t)", content)
    # In order of name: ?t, ?x.
    assert at(2, asked) == ["1 a"]
    assert at(4, asked) == ["3 a", "4 b"]
    # At 11 the element of 1 is gone, which changes nothing; at 13 that of 3 is.
    assert at(12, asked) == ["3 a", "4 b"]
    assert at(13, asked) == ["4 b"]


@pytest.mark.parametrize("content", Content)
def test_A1_timestamp_of_a_triple_looks_into_all_windows_of_the_query(content):
    asked = read(
        "?t",
        "BIND(timestamp(<urn:a>, <urn:p>, 1) AS ?t)",
        content,
        "FROM STREAM <urn:s> [RANGE 10ms STEP 1ms]"
        " FROM NAMED STREAM <urn:other> [RANGE 10ms STEP 1ms]",
    )
    assert at(4, asked) == ["3"]
    assert at(5, asked) == ["5"]


def test_A1_timestamp_of_a_triple_that_no_window_holds_is_an_error():
    asked = read("?y ?t", "?x <urn:p> ?y BIND(timestamp(?x, <urn:q>, ?y) AS ?t)")
    assert at(4, asked) == ["1", "2"]
    kept = read("?y", "?x <urn:p> ?y FILTER(timestamp(?x, <urn:p>, ?y) > 3)")
    assert at(4, kept) == ["2"]
    static = read("?t", "BIND(timestamp(<urn:c>, <urn:p>, 1) AS ?t)")
    assert at(4, static, static=quads("c p 1")) == [""]
    # No triple at all.
    assert at(4, read("?t", "BIND(timestamp(?none, <urn:p>, 1) AS ?t)")) == [""]
    assert at(4, read("?t", "BIND(1 AS ?x) BIND(timestamp(?x, <urn:p>, 1) AS ?t)")) == [""]
    assert at(4, read("?t", "BIND(<urn:a> AS ?x) BIND(timestamp(?x, ?y, 1) AS ?t)")) == [""]


def test_A1_timestamp_of_a_triple_with_a_blank_node():
    asked = read("?t", "?x <urn:p> ?y BIND(timestamp(?x, <urn:p>, ?y) AS ?t)")
    feed = stream((1, "_:b p 1"), (2, "_:b p 1")) + stream((3, "_:b p 1"), name="other")
    assert at(3, asked, feed) == ["2"]


def test_the_evaluator_says_the_same():
    for content in Content:
        asked = read("?x ?t", "?x <urn:p> ?y BIND(timestamp(?x, <urn:p>, ?y) AS ?t)", content)
        (window,) = asked.windows
        held = [element for element in FEED if element.stream == "urn:s"]
        answer = evaluate(asked, Dataset(), windows={window.name: held})
        assert isinstance(answer, Solutions)
        found = sorted(" ".join(map(str, row.values())).split('"')[1] for row in answer.rows)
        assert found == [each.split()[0] for each in at(4, asked)]


CQELS = "SELECT ?x {{ STREAM <urn:s> [{}] {{ ?x <urn:p> ?y }} {} }}"
ASKS = "FILTER(timestamp(?x, <urn:p>, ?y) < 2)"


def test_A2_over_bags_a_time_that_can_change_makes_solutions_be_compared():
    # When the triple comes again, the filter takes back an answer whose elements are still there.
    asked = parse(CQELS.format("RANGE 100ms", ASKS))
    assert not compares_derivations(asked)
    assert not is_monotonic(asked.pattern, asked)
    own = parse(CQELS.format("RANGE 100ms", "FILTER(timestamp(?y) < 2)"))
    assert compares_derivations(own)
    found = run(asked, stream((1, "a p 1"), (2, "a p 1"), (3, "b p 2")))
    assert [answer.t for answer in found.answers] == [1]


def test_a_pattern_that_asks_for_the_time_of_a_triple_is_not_static():
    body = "{ <urn:a> <urn:knows> ?x FILTER(timestamp(?x, <urn:p>, 1) > 0) }"
    asked = parse(CQELS.format("RANGE 100ms", body))
    assert [len(each.patterns) for each in analyze(asked).static] == [1]


@pytest.mark.parametrize("select", ["?x", "(COUNT(*) AS ?n)", "(MAX(timestamp(?x, ?x, ?y)) AS ?n)"])
def test_all_has_to_be_kept_for_the_times_of_triples(select):
    from quadweir.algebra.analyze import refuse_unbounded

    asks = "" if "MAX" in select else ASKS
    asked = parse(CQELS.format("ALL", asks).replace("?x {", f"{select} {{", 1))
    assert not state_bounds(asked)[0].bounded
    with pytest.raises(UnboundedStateError):
        refuse_unbounded(asked)
