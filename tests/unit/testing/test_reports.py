"""R1 to R3 and E3: when a query answers."""

from dataclasses import replace

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.expressions import AggregateCall
from quadweir.algebra.patterns import Aggregation, Group, Project
from quadweir.algebra.query import SelectForm
from quadweir.algebra.windows import AllScope, CountScope, CountUnit
from quadweir.errors import LimitError
from quadweir.kernel.shard import Shard
from quadweir.terms import Variable
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import (
    BAG,
    CHANGE,
    CLOSE,
    CLOSE_NON_EMPTY,
    GRAPH,
    inside,
    join,
    query,
    run,
    seconds,
    stream,
    values,
    window,
)


def two_windows(one, other, **more):
    return query(
        join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
        window(one, name="w"),
        window(other, name="v", over="other"),
        **more,
    )


def reported_by_the_kernel(asked, feed):
    """The number of rows of each report, including empty ones."""
    counted = Aggregation(
        variable=Variable("n"), call=AggregateCall(function="COUNT", argument=None)
    )
    pattern = Project(
        input=Group(input=asked.pattern.input, keys=(), aggregates=(counted,)),
        variables=(Variable("n"),),
    )
    form = SelectForm(variables=(Variable("n"),))
    asked = replace(asked, pattern=pattern, form=form)
    fed = ShardFeed(Shard.of(asked, static=Dataset.of(())), delay_ms=1000)
    answers = as_answers(fed.push(feed), asked) + as_answers(fed.finish(), asked)
    return sorted(answer.t for answer in answers)


def test_R1_on_change_reports_arrivals_and_expiries():
    asked = query(inside("?x p ?y"), window(seconds(10)), report=CHANGE)
    assert run(asked, stream((3, "a p 1"), (7, "b p 1"))).reports == [3, 7, 13, 17]


def test_R1_an_arrival_and_an_expiry_at_one_instant_are_one_report():
    asked = query(inside("?x p ?y"), window(seconds(10)), report=CHANGE)
    assert run(asked, stream((3, "a p 1"), (13, "b p 1"))).reports == [3, 13, 23]


def test_R1_any_window_of_the_query_can_bring_a_report():
    asked = two_windows(seconds(10), seconds(100), report=CHANGE)
    feed = stream((3, "a p 1")) + stream((5, "a q 1"), name="other")
    assert run(asked, feed).reports == [3, 5, 13, 105]


def test_R1_no_report_where_the_content_stays_as_it_is():
    feed = stream((1, "a p 1"), (4, "a p 1"), (20, "b p 1"))
    graph = query(inside("?x p ?y"), window(seconds(10), GRAPH), report=CHANGE)
    assert run(graph, feed).reports == [1, 14, 20, 30]
    bag = query(inside("?x p ?y"), window(seconds(10), BAG), report=CHANGE)
    assert run(bag, feed).reports == [1, 4, 11, 14, 20, 30]


def test_R1_a_stepped_window_changes_at_its_closes_only():
    asked = query(inside("?x p ?y"), window(seconds(10, 5)), report=CHANGE)
    assert run(asked, stream((3, "a p 1"), (21, "b p 1"))).reports == [5, 15, 25, 35]


def test_R2_on_close_reports_at_every_close_instant():
    asked = query(inside("?x p ?y"), window(seconds(10, 5)), report=CLOSE)
    assert run(asked, stream((3, "a p 1"), (21, "b p 1"))).reports == [5, 10, 15, 20, 25, 30, 35]


def test_R2_every_other_stepped_window_counts_as_of_its_own_latest_close():
    asked = two_windows(seconds(4, 4), seconds(10, 10), report=CLOSE)
    feed = stream((13, "a p 1")) + stream((7, "a q 1"), (11, "a q 2"), name="other")
    # At 16 the first window holds a (12 < 13 <= 16), the other one is as it was at 10.
    assert values(asked, feed) == [(16, "a 1 1")]
    assert run(asked, feed).reports == [8, 10, 12, 16, 20, 24, 28, 30]


def test_R2_a_window_without_step_counts_as_of_t():
    asked = two_windows(seconds(4, 4), seconds(10), report=CLOSE)
    feed = stream((13, "a p 1")) + stream((7, "a q 1"), (15, "a q 2"), name="other")
    assert sorted(values(asked, feed)) == [(16, "a 1 1"), (16, "a 1 2")]


def test_R2_a_window_that_has_never_closed_is_empty():
    asked = two_windows(seconds(4, 4), seconds(100, 100), report=CLOSE)
    feed = stream((3, "a p 1")) + stream((2, "a q 1"), name="other")
    assert values(asked, feed) == []


def test_R2_count_windows_close_by_count():
    three = CountScope(unit=CountUnit.ELEMENTS, size=3, step=3)
    asked = query(inside("?x p ?y"), window(three), report=CLOSE)
    feed = stream(*((time, f"e{time} p 1") for time in range(10, 18)))
    assert run(asked, feed).reports == [12, 15]


def test_R2_computed_every_reports_at_its_multiples_and_nowhere_else():
    asked = query(inside("?x p ?y"), window(seconds(10, 10)), report=CLOSE, every_ms=4)
    found = run(asked, stream((3, "a p 1")))
    assert found.reports == [4, 8, 12, 16, 20]
    # The window still counts as of its own latest close: that of 10.
    assert [answer.t for answer in found.answers] == [12, 16]


def test_R3_only_where_some_content_is_not_empty():
    feed = stream((3, "a p 1"), (41, "b p 1"))
    always = query(inside("?x p ?y"), window(seconds(10, 10)), report=CLOSE)
    assert run(always, feed).reports == [10, 20, 30, 40, 50, 60]
    silent = query(inside("?x p ?y"), window(seconds(10, 10)), report=CLOSE_NON_EMPTY)
    assert run(silent, feed).reports == [10, 50]


def test_E3_reports_go_on_until_time_windows_are_empty():
    asked = two_windows(seconds(5, 5), seconds(50), report=CLOSE)
    feed = stream((3, "a p 1")) + stream((4, "a q 1"), name="other")
    assert run(asked, feed).reports[-1] == 55


def test_E3_count_and_all_windows_are_not_waited_for():
    asked = query(inside("?x p ?y"), window(AllScope()))
    assert run(asked, stream((3, "a p 1"), (5, "b p 1"))).reports == [3, 5]
    both = two_windows(seconds(5, 5), CountScope(unit=CountUnit.TRIPLES, size=9), report=CLOSE)
    feed = stream((3, "a p 1")) + stream((4, "a q 1"), name="other")
    assert run(both, feed).reports == [5, 10]


def test_E3_a_stream_that_goes_on_keeps_the_closes_coming():
    asked = two_windows(seconds(5, 5), AllScope(), report=CLOSE)
    feed = stream((3, "a p 1")) + stream((22, "a q 1"), name="other")
    assert run(asked, feed).reports == [5, 10, 15, 20, 25]


def test_E3_a_window_with_a_long_step_is_waited_for_until_its_next_close():
    asked = two_windows(seconds(2, 10), seconds(4, 4), report=CLOSE)
    for times, reports in {
        (1, 1): [4, 8, 10],  # nothing is in a window from 8 on, but the first has yet to close
        (9, 3): [4, 8, 10, 12, 16, 20],
        (5, 13): [8, 10, 12, 16, 20],
    }.items():
        feed = stream((times[0], "a p 1")) + stream((times[1], "a q 1"), name="other")
        assert run(asked, feed).reports == reports
        assert reported_by_the_kernel(asked, feed) == reports


def test_no_elements_no_reports():
    for report in (CHANGE, CLOSE):
        assert run(query(inside("?x p ?y"), window(seconds(5, 5)), report=report), []).reports == []


def test_the_number_of_reports_is_bounded():
    asked = query(inside("?x p ?y"), window(seconds(1, 1)), report=CLOSE)
    with pytest.raises(LimitError) as caught:
        run(asked, stream((0, "a p 1"), (10**12, "b p 1")), max_reports=50)
    assert caught.value.code == "QW-LIMIT"
