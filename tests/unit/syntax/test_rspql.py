"""RSP-QL: REGISTER, windows, and the policies they imply (rules W1 to W8, R1 to R3, A2)."""

from __future__ import annotations

import pytest

from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
)
from quadweir.errors import QuerySyntaxError
from quadweir.syntax import parse
from quadweir.terms import IRI, Variable
from trees import asked, tree

EX = "http://example.org/"
TRIPLES, ELEMENTS = CountUnit.TRIPLES, CountUnit.ELEMENTS


def window(text: str) -> Window:
    (only,) = asked(f"SELECT * FROM NAMED WINDOW :w ON :s {text} {{}}").windows
    return only


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("[RANGE PT10S]", TimeScope(range_ms=10_000)),
        ("[range pt1m30.5s step p1dt2h]", TimeScope(range_ms=90_500, step_ms=93_600_000)),
        ("[RANGE 10s SLIDE 100ms]", TimeScope(range_ms=10_000, step_ms=100)),
        ("[RANGE 10 STEP 2]", TimeScope(range_ms=10, step_ms=2)),
        ("[RANGE 2h TUMBLING]", TimeScope(range_ms=7_200_000, step_ms=7_200_000)),
        ("[RANGE 1 min 30 seconds STEP 1 Hour]", TimeScope(range_ms=90_000, step_ms=3_600_000)),
        ("[RANGE 1d2h3m4s5ms]", TimeScope(range_ms=93_784_005)),
        ("[RANGE 5000000ns]", TimeScope(range_ms=5)),
        ("[RANGE 0.5s]", TimeScope(range_ms=500)),
        ("[RANGE P2W]", TimeScope(range_ms=1_209_600_000)),
        ("[TRIPLES 10]", CountScope(unit=TRIPLES, size=10)),
        ("[COUNT 10 STEP 5]", CountScope(unit=TRIPLES, size=10, step=5)),
        ("[ELEMENTS 3 TUMBLING]", CountScope(unit=ELEMENTS, size=3, step=3)),
        ("[FROM NOW-PT1H TO NOW-PT30M]", PastScope(from_ms=3_600_000, to_ms=1_800_000)),
        ("[FROM NOW - 10s TO NOW STEP 2s]", PastScope(from_ms=10_000, to_ms=0, step_ms=2_000)),
        (
            "[FROM NOW-10s TO NOW-4s TUMBLING]",
            PastScope(from_ms=10_000, to_ms=4_000, step_ms=6_000),
        ),
        ("[NOW]", NowScope()),
        ("[ALL]", AllScope()),
        ("[ # ten\n RANGE # seconds\n 10 # really\n s ]", TimeScope(range_ms=10_000)),
    ],
)
def test_scopes(text: str, scope: Scope) -> None:
    assert window(text).scope == scope


def test_event_time_predicate() -> None:
    assert window("[RANGE PT2H @:pickupTime]").event_time == IRI(f"{EX}pickupTime")
    assert window("[COUNT 3 @<http://x/5s>]").event_time == IRI("http://x/5s")
    assert window("[COUNT 3]").event_time is None


@pytest.mark.parametrize(
    "text",
    [
        "[RANGE P1Y]",
        "[RANGE 0s]",
        "[RANGE 1s STEP 0s]",
        "[RANGE 1ns]",
        "[RANGE]",
        "[RANGE 99999999999999d]",
        "[TRIPLES 0]",
        "[TRIPLES 5s]",
        "[TRIPLES 5 STEP 0]",
        "[FROM NOW-1s TO NOW-1s]",
        "[FROM NOW-1s TO NOW-2s]",
        "[FROM NOW-1s TO NOW STEP 0s]",
        "[TUMBLING 10s]",
        "[RANGE -5s]",
        "[]",
        "",
    ],
)
def test_wrong_scopes(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        window(text)
    assert caught.value.span is not None


def test_a_window_is_a_graph_unless_asked_otherwise() -> None:
    """W8: RSP-QL's windows are graphs; the content is selectable."""
    assert window("[NOW]").content is Content.GRAPH
    text = "SELECT * FROM NAMED WINDOW :w ON :s [NOW] {}"
    assert asked(text, content=Content.BAG).windows[0].content is Content.BAG


def test_window_patterns() -> None:
    query = asked(
        "SELECT * FROM NAMED WINDOW :w ON STREAM :s [RANGE 1s] FROM NAMED WINDOW :v ON :t [NOW]"
        " { ?a :static ?b WINDOW :w { ?a :p ?b FILTER(?b) } WINDOW ?v { ?b :q ?c } }"
    )
    assert query.pattern == tree(
        "(project (?a ?b ?v ?c) (join (bgp (triple ?a :static ?b))"
        " (window :w (filter ?b (bgp (triple ?a :p ?b)))) (window ?v (bgp (triple ?b :q ?c)))))"
    )
    assert [each.stream.value for each in query.windows] == [f"{EX}s", f"{EX}t"]  # type: ignore[union-attr]
    assert query.default_graph_windows == ()


@pytest.mark.parametrize(
    ("windows", "report"),
    [
        ("[RANGE 1s]", ON_CHANGE),
        ("[RANGE 1s STEP 1s]", ON_CLOSE),
        ("[COUNT 5]", ON_CHANGE),
        ("[COUNT 5 STEP 1]", ON_CLOSE),
        ("[FROM NOW-2s TO NOW-1s]", ON_CHANGE),
    ],
)
def test_report_follows_the_windows(windows: str, report: object) -> None:
    """R1, R2: on change without STEP, on close with it; R3: RSP-QL reports always."""
    query = asked(f"SELECT * FROM NAMED WINDOW :w ON :s {windows} {{}}")
    assert query.report == report
    assert not query.report.non_empty_only


def test_one_stepped_window_makes_the_query_report_on_close() -> None:
    query = asked(
        "SELECT * FROM NAMED WINDOW :w ON :s [RANGE 1s] FROM NAMED WINDOW :v ON :s [RANGE 1s STEP 1s] {}"
    )
    assert query.report == ON_CLOSE


@pytest.mark.parametrize(
    ("text", "name", "output"),
    [
        ("REGISTER ISTREAM :q AS", f"{EX}q", OutputOperator.ISTREAM),
        ("REGISTER DStream <http://x/q> AS", "http://x/q", OutputOperator.DSTREAM),
        ("REGISTER RStream <output> AS", "output", OutputOperator.RSTREAM),
        ("REGISTER STREAM :q AS", f"{EX}q", OutputOperator.RSTREAM),
        ("register query q as prefix e: <http://x/>", "q", OutputOperator.RSTREAM),
        ("", None, OutputOperator.RSTREAM),
    ],
)
def test_register(text: str, name: str | None, output: OutputOperator) -> None:
    query = asked(f"{text} SELECT * FROM NAMED WINDOW :w ON :s [NOW] {{}}")
    assert (query.name, query.output) == (name, output)


def test_output_operator_after_select_or_construct() -> None:
    window_text = "FROM NAMED WINDOW :w ON :s [NOW]"
    assert asked(f"SELECT ISTREAM ?a {window_text} {{}}").output is OutputOperator.ISTREAM
    query = asked(f"REGISTER STREAM :q AS CONSTRUCT DSTREAM {{}} {window_text} {{}}")
    assert query.output is OutputOperator.DSTREAM


def test_names_of_streams_and_windows_may_be_relative() -> None:
    query = parse("SELECT * FROM NAMED WINDOW <w> ON <s> [NOW] { WINDOW <w> {} }")
    assert (query.windows[0].name, query.windows[0].stream) == (IRI("w"), IRI("s"))
    query = parse("SELECT * FROM NAMED WINDOW <w> ON <s> [NOW] { WINDOW <w> {} }", base=EX)
    assert query.windows[0].name == IRI(f"{EX}w")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] { WINDOW :v {} }",
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] FROM NAMED WINDOW :w ON :t [NOW] {}",
        "SELECT * FROM WINDOW :w ON :s [NOW] {}",
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] { STREAM :s [NOW] {} }",
        "REGISTER :q AS SELECT * FROM NAMED WINDOW :w ON :s [NOW] {}",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(text, "rspql")
    assert caught.value.span is not None


def test_the_taxi_query_as_printed() -> None:
    text = """
SELECT ?taxi (AVERAGE(?fare/(?tripTime/3600)) AS ?hourlyRate)
FROM NAMED WINDOW :W1 ON nyctaxi:fare [COUNT 1000]
FROM NAMED WINDOW :W2 ON nyctaxi:pickup
[RANGE PT2H @:pickupTime]
FROM NAMED WINDOW :W3 ON nyctaxi:dropoff
[RANGE PT1H @:dropoffTime]
WHERE {
  WINDOW :W1{ ?trans :fare ?fare. ?trans :pickupTime ?pTime}
  WINDOW :W2{ ?ride :taxi ?taxi. ?ride :pickupTime ?pTime}
  WINDOW :W3{ ?ride :tripTime ?tripTime}
}
GROUP BY ?taxi
"""
    query = parse(text, prefixes={"": EX, "nyctaxi": "http://taxi/"})
    assert query.report == ON_CHANGE
    assert query.pattern == tree(
        "(project (?taxi ?hourlyRate) (extend ?hourlyRate ?_:avg1 (group (?taxi)"
        " ((?_:avg1 (AVG (/ ?fare (/ ?tripTime 3600))))) (join"
        " (window :W1 (bgp (triple ?trans :fare ?fare) (triple ?trans :pickupTime ?pTime)))"
        " (window :W2 (bgp (triple ?ride :taxi ?taxi) (triple ?ride :pickupTime ?pTime)))"
        " (window :W3 (bgp (triple ?ride :tripTime ?tripTime)))))))"
    )


@pytest.mark.parametrize(
    "text",
    [
        "PREFIX e: <http://e/> REGISTER RSTREAM e:out AS",
        "REGISTER RSTREAM e:out AS PREFIX e: <http://e/>",
        "BASE <http://e/> REGISTER RSTREAM <out> AS",
        "PREFIX : <http://x/> REGISTER RSTREAM <http://e/out> AS PREFIX e: <http://e/>",
    ],
)
def test_prefixes_come_before_or_after_register(text: str) -> None:
    body = "SELECT ?a FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] { WINDOW <urn:w> { ?a ?b ?c } }"
    query = parse(f"{text} {body}", dialect="rspql")
    assert query.name == "http://e/out"


def test_a_query_is_computed_by_the_clock() -> None:
    text = "REGISTER RSTREAM 1st-query COMPUTED EVERY 5s AS SELECT * { }"
    query = asked(text, dialect="rspql")
    assert (query.name, query.tick.every_ms) == ("1st-query", 5000)


def test_a_window_may_come_before_its_stream() -> None:
    before = asked("SELECT * FROM NAMED WINDOW :w [RANGE 5s STEP 1s] ON STREAM :s { }")
    after = asked("SELECT * FROM NAMED WINDOW :w ON STREAM :s [RANGE 5s STEP 1s] { }")
    assert before == after


def test_a_window_over_every_stream_binds_its_name() -> None:
    query = asked("SELECT * FROM NAMED WINDOW :w ON ?s [NOW] { WINDOW :w { ?a :p ?b } }")
    assert query.windows[0].stream == Variable("s")
    assert query.form.variables == (Variable("s"), Variable("a"), Variable("b"))
    # CQELS-QL says the same, over bags and with its own output.
    cqels = asked("SELECT * { STREAM ?s [NOW] { ?a :p ?b } }")
    assert query.form == cqels.form


def test_a_duration_in_quotes_gets_a_hint_about_durations() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(
            'SELECT * FROM NAMED WINDOW :w ON :s [RANGE "PT1S" STEP PT1S] { WINDOW :w { ?a :p ?b } }'
        )
    assert "PT10S" in (caught.value.hint or "")
