"""S4, the part about idle streams: who holds the watermark back, and what is late then."""

import pytest

from quadweir.algebra.windows import AllScope
from quadweir.testing import ArrivedElement, Oracle
from streaming import inside, join, quads, query, short, window

ASKED = query(
    join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
    window(AllScope(), name="w", over="fast"),
    window(AllScope(), name="v", over="slow"),
)


def arrive(*arrivals):
    """Elements (arrival, stream, event time), each with a triple that joins with all others."""
    from quadweir.sources.streamfiles import Element

    return [
        ArrivedElement(
            Element(f"urn:{name}", time, place, quads(f"a {'pq'[name == 'slow']} {time}")), at
        )
        for place, (at, name, time) in enumerate(arrivals)
    ]


def late(*arrivals, idle_ms=100, delay_ms=0):
    """List the event times of the late elements."""
    oracle = Oracle(ASKED, delay_ms=delay_ms, idle_ms=idle_ms)
    return [element.event_time for element in oracle.run(arrive(*arrivals)).late]


def test_S4_an_idle_stream_stops_holding_the_watermark_back():
    feed = [(0, "slow", 10), (50, "fast", 90), (101, "fast", 40)]
    assert late(*feed) == [40]
    # Had the slow stream never been idle, the watermark would still be at 10.
    assert late(*feed, idle_ms=None) == []
    # The lowest of the other streams less the allowed delay is the watermark.
    assert late(*feed, delay_ms=50) == [40]
    assert late(*feed, delay_ms=51) == []


def test_S4_a_late_element_changes_no_answer():
    fed = arrive((0, "slow", 10), (50, "fast", 90), (101, "fast", 40))
    idle = Oracle(ASKED, delay_ms=0, idle_ms=100).answers(fed)
    assert [short(each) for each in idle] == [(90, "+", {"x": "a", "y": "90", "z": "10"})]
    assert len(Oracle(ASKED, delay_ms=0).answers(fed)) == 3


def test_S4_a_stream_is_not_idle_before_its_set_time_is_over():
    assert late((0, "slow", 10), (50, "fast", 90), (100, "fast", 40)) == []


def test_S4_a_stream_that_was_never_heard_of_falls_idle_too():
    # It counts from the first arrival, here at 1000.
    assert late((1000, "fast", 90), (1100, "fast", 40), (1101, "fast", 30)) == [30]


def test_S4_what_comes_back_from_an_idle_stream_is_late_if_the_watermark_has_passed_it():
    feed = [(0, "slow", 10), (90, "fast", 90), (150, "slow", 20), (151, "slow", 90)]
    # An element of 90 is at the watermark, and not of the newest instant of its own stream so far.
    assert late(*feed, (152, "slow", 91)) == [20, 90]
    # Nor is its own newest instant one to come back to.
    assert late(*feed[:2], (150, "slow", 10)) == [10]


def test_S4_the_watermark_waits_until_a_stream_that_was_idle_has_caught_up():
    feed = [(0, "slow", 10), (90, "fast", 90), (150, "slow", 20), (160, "fast", 200)]
    # The slow stream is back: at 200 alone the fast one cannot move the watermark on from 90 ...
    assert late(*feed, (161, "fast", 100), (161, "fast", 90)) == [20, 90]
    # ... until the slow one has passed 90 too.
    assert late(*feed, (162, "slow", 120), (163, "fast", 100)) == [20, 100]


def test_S4_a_late_element_shows_that_its_stream_is_not_idle():
    feed = [(0, "slow", 10), (90, "fast", 90), (150, "slow", 20), (180, "fast", 200)]
    # The slow stream, late at 150, is idle again from 250 on; the fast one is heard of till then.
    assert late(*feed, (250, "fast", 150)) == [20]
    assert late(*feed, (251, "fast", 150)) == [20, 150]


def test_S4_streams_fall_idle_between_arrivals_in_their_order():
    # When the slow stream fell idle at 100, the fast one did not yet: that moved the watermark to
    # 90, although both were idle when the next element came.
    assert late((0, "slow", 10), (50, "fast", 90), (5000, "slow", 80)) == [80]


def test_S4_while_all_streams_are_idle_the_watermark_stays():
    # Both fall idle at the same instant: nothing says that the watermark may move on.
    assert late((0, "slow", 10), (0, "fast", 90), (5000, "fast", 40)) == []
    # The slow stream is still idle when the fast one is heard of again.
    assert late((0, "slow", 10), (0, "fast", 90), (5000, "fast", 95), (5001, "fast", 40)) == [40]


def test_S4_each_stream_has_its_own_set_time():
    feed = [(0, "fast", 90), (0, "slow", 10), (600, "fast", 40)]
    assert late(*feed, idle_ms={"urn:slow": 500}) == [40]
    assert late(*feed, idle_ms={"urn:slow": 700}) == []
    assert late(*feed, idle_ms={"urn:fast": 500}) == []


def test_S4_without_idle_streams_times_of_arrival_are_of_no_account():
    fed = arrive((500, "slow", 10), (3, "fast", 90), (100, "slow", 60), (7, "fast", 40))
    plain = [each.element for each in fed]
    assert Oracle(ASKED, delay_ms=0).run(fed) == Oracle(ASKED, delay_ms=0).run(plain)


def test_idle_streams_need_times_of_arrival():
    fed = arrive((0, "fast", 1), (5, "slow", 1))
    with pytest.raises(ValueError, match="an element has none"):
        Oracle(ASKED, delay_ms=0, idle_ms=10).run([fed[0], fed[1].element])
    with pytest.raises(ValueError, match="arrives at 0, after one that came at 5"):
        Oracle(ASKED, delay_ms=0, idle_ms=10).run(fed[::-1])
