"""W1 to W10: what is in a window at an instant."""

import pytest

from quadweir.algebra.windows import (
    AllScope,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    TimeScope,
)
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import IRI, Variable
from quadweir.testing import diff_answers
from quadweir.testing.contents import OpenWindow
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import (
    BAG,
    CLOSE,
    GRAPH,
    ISTREAM,
    inside,
    join,
    query,
    run,
    seconds,
    short,
    stream,
    values,
    window,
)


def opened(scope, *times, content=BAG):
    feed = stream(*((time, f"e{number} p 1") for number, time in enumerate(times)))
    return OpenWindow(window(scope, content), IRI("urn:s"), tuple(feed))


def held(scope, t, *times):
    return [element.event_time for element in opened(scope, *times).content(t)]


def test_W1_range_holds_what_is_younger_than_it():
    # t - r < time <= t
    assert held(seconds(10), 20, 9, 10, 11, 20, 21) == [11, 20]


def test_W1_elements_before_1970_count_too():
    assert held(seconds(10), -5, -15, -14, -5, -4) == [-14, -5]


def test_W2_step_looks_only_at_close_instants():
    stepped = seconds(10, 4)
    assert held(stepped, 12, 1, 3, 9, 12) == [3, 9, 12]
    # Between the closes at 12 and 16 it is as it was at 12.
    assert held(stepped, 15, 1, 3, 9, 12, 14) == [3, 9, 12]
    assert held(stepped, 16, 1, 3, 9, 12, 14) == [9, 12, 14]


def test_W2_close_instants_do_not_depend_on_the_first_element():
    asked = query(inside("?x p ?y"), window(seconds(4, 4)), report=CLOSE)
    assert run(asked, stream((6, "a p 1"))).reports == [8, 12]
    assert run(asked, stream((7, "a p 1"), (10, "a p 1"))).reports == [8, 12, 16]


def test_W2_a_given_origin_moves_the_close_instants():
    scope = TimeScope(range_ms=4, step_ms=4, origin_ms=3)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    assert run(asked, stream((6, "a p 1"))).reports == [7, 11]


def test_W2_the_first_close_is_one_step_after_the_origin():
    assert held(seconds(10, 4), 3, 1, 2) == []
    assert held(seconds(10, 4), 0, -1) == []
    assert held(seconds(10, 4), 4, 1, 2) == [1, 2]


def test_W9_a_full_window_opens_at_the_origin():
    scope = TimeScope(range_ms=10, step_ms=3, origin_ms=2, full=True)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    # (2, 12], (5, 15], (8, 18], ...: what comes at 2 or before is in none of them.
    assert run(asked, stream((1, "a p 1"), (2, "b p 1"), (3, "c p 1"))).reports == [12, 15]
    assert held(scope, 11, 1, 2, 3, 12) == []
    assert held(scope, 12, 1, 2, 3, 12) == [3, 12]
    assert held(scope, 15, 3, 5, 6, 15, 16) == [6, 15]


def test_W9_the_window_before_the_first_element_is_not_waited_for():
    scope = TimeScope(range_ms=10, step_ms=5, full=True)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    assert run(asked, stream((21, "a p 1"))).reports == [25, 30, 35]


def test_W9_windows_open_before_and_close_with_their_last_instant():
    # (o, c]: an element at o is in the window before, one at c still in this.
    scope = TimeScope(range_ms=5, step_ms=5, origin_ms=10, full=True)
    assert held(scope, 15, 10, 11, 15, 16) == [11, 15]
    # Benchmarks that have it the other way round, [o, c), start one millisecond earlier.
    other = TimeScope(range_ms=5, step_ms=5, origin_ms=9, full=True)
    assert held(other, 14, 9, 10, 14, 15) == [10, 14]


def test_W10_a_window_that_is_open_counts_as_far_as_it_is_filled():
    scope = TimeScope(range_ms=5, step_ms=5, while_open=True)
    assert held(scope, 3, 1, 3, 4) == [1, 3]
    assert held(scope, 5, 1, 3, 5, 6) == [1, 3, 5]
    assert held(scope, 6, 1, 3, 5, 6) == [6]


def test_W10_of_several_open_windows_the_one_that_closes_first_counts():
    scope = TimeScope(range_ms=10, step_ms=3, full=True, while_open=True)
    # By the authors of CSRBench: (0, 10], (3, 13], (6, 16].
    assert held(scope, 3, 1, 3, 12, 15) == [1, 3]
    assert held(scope, 12, 1, 3, 4, 12, 15) == [4, 12]
    assert held(scope, 15, 4, 7, 12, 15) == [7, 12, 15]


def test_W10_stepped_windows_report_every_change_of_their_content():
    scope = TimeScope(range_ms=10, step_ms=10, while_open=True)
    asked = query(inside("?x p ?y"), window(scope))
    feed = stream((1, "a p 1"), (3, "b p 1"), (12, "c p 1"))
    # With the arrivals, and where the window of (0, 10] gives way to that of (10, 20].
    assert run(asked, feed).reports == [1, 3, 11, 12, 21]


def test_W10_between_two_windows_nothing_counts():
    scope = TimeScope(range_ms=2, step_ms=5, while_open=True)
    assert [held(scope, t, 1, 2, 3, 4, 5, 6) for t in (2, 4, 5, 6)] == [[], [4], [4, 5], []]


def test_W3_tumbling_windows_hold_every_element_once():
    asked = query(inside("?x p ?y"), window(seconds(5, 5)), report=CLOSE)
    feed = stream(*((time, f"e{time} p 1") for time in (1, 4, 5, 6, 10, 11)))
    assert values(asked, feed) == [
        (5, "e1 1"),
        (5, "e4 1"),
        (5, "e5 1"),
        (10, "e10 1"),
        (10, "e6 1"),
        (15, "e11 1"),
    ]


def test_W4_triples_counts_the_last_triples():
    two = CountScope(unit=CountUnit.TRIPLES, size=2)
    assert held(two, 30, 10, 20, 30, 40) == [20, 30]
    assert held(two, 10, 10, 20) == [10]


def test_W4_elements_counts_elements_whatever_their_size():
    scope = CountScope(unit=CountUnit.ELEMENTS, size=2)
    asked = query(inside("?x p ?y"), window(scope))
    feed = stream((1, "a p 1"), (2, "b p 1 . b p 2"), (3, "c p 1 . c p 2"))
    assert [words for t, words in values(asked, feed) if t == 3] == ["b 1", "b 2", "c 1", "c 2"]


def test_W4_the_order_is_event_time_then_position():
    one = CountScope(unit=CountUnit.TRIPLES, size=1)
    asked = query(inside("?x p ?y"), window(one))
    # Both happen at 5: the later position is the last one.
    assert values(asked, stream((5, "a p 1"), (5, "b p 1"))) == [(5, "b 1")]
    assert values(asked, stream((9, "a p 1"), (5, "b p 1"))) == [(5, "b 1"), (9, "a 1")]


def test_W4_step_looks_at_every_mth():
    scope = CountScope(unit=CountUnit.TRIPLES, size=3, step=2)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    feed = stream(*((time, f"e{time} p 1") for time in range(1, 6)))
    assert run(asked, feed).reports == [2, 4]
    assert values(asked, feed) == [(2, "e1 1"), (2, "e2 1")] + [
        (4, f"e{time} 1") for time in (2, 3, 4)
    ]


def test_W4_step_counts_triples_of_whole_elements():
    scope = CountScope(unit=CountUnit.TRIPLES, size=2, step=2)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    feed = stream((1, "a p 1"), (2, "b p 1 . b p 2"), (3, "c p 1"), (4, "d p 1"))
    # Running counts 1, 3, 4, 5: multiples of two are passed at 2 and 3.
    assert run(asked, feed).reports == [2, 3]


def test_W5_now_holds_the_elements_of_the_instant():
    assert held(NowScope(), 20, 19, 20, 20, 21) == [20, 20]
    asked = query(inside("?x p ?y"), window(NowScope()))
    assert run(asked, stream((5, "a p 1"), (6, "b p 1"), (9, "c p 1"))).reports == [5, 6, 7, 9, 10]


def test_W5_all_holds_every_element_so_far():
    assert held(AllScope(), 20, -3, 5, 20, 21) == [-3, 5, 20]


def test_W6_past_windows_end_before_now():
    # t - 20 < time <= t - 5
    assert held(PastScope(from_ms=20, to_ms=5), 100, 80, 81, 95, 96) == [81, 95]


def test_W6_past_windows_change_when_elements_come_of_age():
    asked = query(inside("?x p ?y"), window(PastScope(from_ms=20, to_ms=5)))
    assert run(asked, stream((100, "a p 1"))).reports == [105, 120]


def test_W6_past_windows_can_have_a_step():
    scope = PastScope(from_ms=20, to_ms=5, step_ms=10)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    # In at the first close not before 107, out at the first not before 122.
    found = run(asked, stream((102, "a p 1")))
    assert [answer.t for answer in found.answers] == [110, 120]
    assert found.reports == [110, 120, 130]


@pytest.mark.parametrize("content", [BAG, GRAPH])
def test_W7_elements_of_equal_time_enter_together(content):
    asked = query(inside("?x p ?y"), window(seconds(10), content), output=ISTREAM)
    found = run(asked, stream((5, "a p 1"), (5, "b p 1"), (5, "c p 1")))
    assert found.reports == [5, 15]
    assert [answer.t for answer in found.answers] == [5, 5, 5]


def test_W7_a_count_window_is_evaluated_once_in_an_instant():
    scope = CountScope(unit=CountUnit.TRIPLES, size=2, step=1)
    asked = query(inside("?x p ?y"), window(scope), report=CLOSE)
    found = run(asked, stream((5, "a p 1"), (5, "b p 1"), (5, "c p 1")))
    assert found.reports == [5]
    assert [short(answer)[2]["x"] for answer in found.answers] == ["b", "c"]


def test_W8_in_a_bag_every_element_counts():
    asked = query(inside("?x p ?y"), window(seconds(10), BAG))
    assert values(asked, stream((1, "a p 1"), (2, "a p 1"))) == [
        (1, "a 1"),
        (2, "a 1"),
        (2, "a 1"),
        (11, "a 1"),
    ]


def test_W8_in_a_graph_a_triple_is_there_once():
    asked = query(inside("?x p ?y"), window(seconds(10), GRAPH))
    # The second arrival changes nothing; the triple leaves with its last carrier.
    found = run(asked, stream((1, "a p 1"), (2, "a p 1")))
    assert [(answer.t) for answer in found.answers] == [1]
    assert found.reports == [1, 12]


def test_W8_bags_multiply_in_joins():
    pattern = join(inside("?x p ?y"), inside("?x q ?z"))
    asked = query(pattern, window(seconds(10), BAG), select="x")
    feed = stream((1, "a p 1"), (2, "a p 1"), (3, "a q 1"), (4, "a q 1"))
    assert [t for t, _ in values(asked, feed) if t == 4] == [4] * 4
    graph = query(pattern, window(seconds(10), GRAPH), select="x")
    assert [t for t, _ in values(graph, feed)] == [3]


@pytest.mark.parametrize("content", [BAG, GRAPH])
def test_W8_an_element_that_carries_a_triple_twice_counts_once(content):
    asked = query(inside("?x p ?y"), window(seconds(10), content))
    assert values(asked, stream((1, "a p 1 . a p 1"))) == [(1, "a 1")]


MERGED = """SELECT (COUNT(*) AS ?n)
FROM STREAM <urn:s> [RANGE 10ms STEP 5ms]
FROM STREAM <urn:s> [RANGE 5ms STEP 5ms]
WHERE { ?x <urn:p> ?y }"""


@pytest.mark.parametrize(("content", "counts"), [(BAG, ["2", "1"]), (GRAPH, ["1", "1"])])
def test_W8_merged_bags_add_up(content, counts):
    """At 5 the element is in both windows, at 10 in the longer one alone."""
    asked = parse(MERGED, dialect="csparql", content=content)
    found = run(asked, stream((1, "a p 1"))).answers
    assert [short(answer)[2]["n"] for answer in found] == counts


@pytest.mark.parametrize("content", [BAG, GRAPH])
@pytest.mark.parametrize("incremental", [True, False])
def test_W8_the_kernel_adds_merged_bags_up(content, incremental):
    asked = parse(MERGED, dialect="csparql", content=content)
    feed = stream((1, "a p 1"), (3, "a p 1"), (7, "a p 2"))
    wanted = run(asked, feed).answers
    shard = ShardFeed(Shard.of(optimize(asked).query, incremental=incremental))
    found = [
        answer for part in (shard.push(feed), shard.finish()) for answer in as_answers(part, asked)
    ]
    assert diff_answers(wanted, found) == ""


def test_a_stream_variable_opens_a_window_over_every_stream():
    w = window(seconds(10), over="?stream")
    asked = query(inside("?x p ?y"), w)
    feed = stream((1, "a p 1"), name="s1") + stream((2, "b p 2"), name="s2")
    found = [short(answer) for answer in run(asked, feed).answers]
    assert found[0] == (1, "+", {"stream": "s1", "x": "a", "y": "1"})
    assert (2, "+", {"stream": "s2", "x": "b", "y": "2"}) in found


def test_a_window_variable_ranges_over_the_declared_windows():
    pattern = inside("?x p ?y", "?which")
    asked = query(pattern, window(seconds(10), name="w"), window(seconds(1), name="v"))
    found = run(asked, stream((1, "a p 1"))).answers
    assert [(short(a)[0], short(a)[2]["which"]) for a in found if a.t == 1] in (
        [(1, "w"), (1, "v")],
        [(1, "v"), (1, "w")],
    )
    assert [(a.t, short(a)[2]["which"]) for a in found if a.t == 2] == [(2, "w")]
    assert Variable("which") in asked.form.variables
