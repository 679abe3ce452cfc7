"""The properties of a join window become a window, or an error at their place."""

from __future__ import annotations

import pytest

from ndw_mappings import kafka, mapping
from quadweir.errors import MappingError
from quadweir.kernel.streamjoin.policies import (
    CarryPolicy,
    CountPolicy,
    PaperPolicy,
    ReleasedPolicy,
)
from quadweir.kernel.streamjoin.windows import (
    Dynamic,
    Interval,
    JoinTiming,
    JoinWindow,
    Sliding,
    Tumbling,
)
from quadweir.mapping.check import check_mapping, lint
from quadweir.mapping.joins import StreamTime, timing_of, window_of
from quadweir.mapping.model import Mapping, RefObjectMap
from quadweir.mapping.read import parse_mapping

SPEED, FLOW = kafka("127.0.0.1:9092", "ndwspeed"), kafka("127.0.0.1:9092", "ndwflow")


def read(join: str) -> Mapping:
    return parse_mapping(mapping(SPEED, FLOW, join=join))


def item_of(found: Mapping) -> RefObjectMap:
    (item,) = found.triples_maps[0].ref_object_maps()
    return item


@pytest.mark.parametrize(
    ("join", "window"),
    [
        ("rmls:TumblingJoin", Tumbling(2_000)),
        ("rmls:TumblingWindowJoin", Tumbling(2_000)),
        ("rmls:CrossJoin ; rmls:windowType rmls:Sliding", Sliding(2_000, 1_000)),
        ("rmls:CrossJoin", Tumbling(2_000)),
        ('rmls:SlidingWindowJoin ; qw:size "3 s" ; qw:slide 500', Sliding(3_000, 500)),
        ("rmls:DynamicWindowJoin", Dynamic(CarryPolicy())),
        ('rmls:DynamicJoin ; qw:variant "paper"', Dynamic(PaperPolicy())),
        ('rmls:DynamicJoin ; qw:variant "released"', Dynamic(ReleasedPolicy())),
        ("rmls:DynamicJoin ; qw:count 50", Dynamic(CountPolicy(limit=50))),
        ('rmls:DynamicJoin ; qw:policy "paper"', Dynamic(PaperPolicy())),
        (
            'rmls:DynamicJoin ; qw:size "9 s" ; qw:lowerThreshold 0.5 ; qw:growFactor 1.1',
            Dynamic(CarryPolicy(size_ms=9_000, max_size_ms=9_000, lower=0.5, grow=1.1)),
        ),
        ('qw:Interval ; qw:distance "PT0.5S"', Interval(500)),
    ],
)
def test_all_spellings_and_parameters(join: str, window: JoinWindow) -> None:
    found = read(join)
    check_mapping(found)
    item = item_of(found)
    assert item.window is not None
    assert window_of(item.window) == window
    assert len(item.conditions) == 4
    assert lint(found) == []


@pytest.mark.parametrize(
    ("join", "message"),
    [
        ('rmls:DynamicJoin ; qw:minSize "9 s"', "between 9000 and 5000 ms"),
        ("rmls:DynamicJoin ; qw:lowerThreshold 3", "lower threshold of 3.0"),
        ('rmls:DynamicJoin ; qw:variant "newest"', "not a variant"),
        ('rmls:DynamicJoin ; qw:policy "mine"', "no window policy is called 'mine'"),
        ('rmls:SlidingJoin ; qw:size "1 s" ; qw:slide "2 s"', "moves by 2000 ms"),
        ('rmls:TumblingJoin ; qw:timestamp "$.t["', "the time"),
    ],
)
def test_windows_that_cannot_be_are_refused_at_their_place(join: str, message: str) -> None:
    found = read(join)
    with pytest.raises(MappingError) as refused:
        check_mapping(found)
    assert message in str(refused.value)
    assert refused.value.span is not None
    # The object map begins there.
    assert refused.value.span.line == item_of(found).span.line  # type: ignore[union-attr]
    assert any(each.level == "error" for each in lint(found))


def test_a_window_over_files_is_doubtful() -> None:
    found = parse_mapping(mapping('"a.json"', FLOW, join="rmls:TumblingJoin"))
    assert [each.code for each in lint(found)] == ["window-without-streams"]


def test_delays_come_from_the_window_the_stream_or_the_kind_of_time() -> None:
    def timing(join: str, child: StreamTime, parent: StreamTime) -> JoinTiming:
        window = item_of(read(join)).window
        assert window is not None
        return timing_of(window, child, parent)

    plain, declared = StreamTime(), StreamTime("t", 3_000, 9_000)
    assert timing("rmls:TumblingJoin", plain, plain) == JoinTiming((1_000, 1_000), 60_000)
    assert timing("rmls:TumblingJoin", declared, plain) == JoinTiming((3_000, 1_000), 9_000)
    timed = 'rmls:TumblingJoin ; qw:parentTimestamp "at"'
    assert timing(timed, plain, plain) == JoinTiming((1_000, 10_000), 60_000)
    said = 'rmls:TumblingJoin ; qw:delay "7 s" ; qw:idle "1 min"'
    assert timing(said, declared, plain) == JoinTiming((7_000, 7_000), 60_000)
