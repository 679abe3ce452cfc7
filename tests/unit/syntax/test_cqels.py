"""CQELS-QL 1 and 2: STREAM blocks, FROM STREAM, and their policies (W5, W8, R1, R3, A2)."""

from __future__ import annotations

import pytest

from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator, ReportPolicy
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    Scope,
    TimeScope,
)
from quadweir.errors import QuerySyntaxError, UnsupportedError
from quadweir.syntax import parse
from quadweir.terms import IRI, Variable
from trees import PREFIX, asked, tree

EX = "http://example.org/"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("[NOW]", NowScope()),
        ("[ALL]", AllScope()),
        ("[RANGE 15s]", TimeScope(range_ms=15_000)),
        ("[RANGE 1h30m]", TimeScope(range_ms=5_400_000)),
        ("[RANGE 100ms SLIDE 1000000ns]", TimeScope(range_ms=100, step_ms=1)),
        ("[RANGE 1d TUMBLING]", TimeScope(range_ms=86_400_000, step_ms=86_400_000)),
        ("[TRIPLES 7]", CountScope(unit=CountUnit.TRIPLES, size=7)),
    ],
)
def test_scopes(text: str, scope: Scope) -> None:
    (window,) = asked(f"SELECT * {{ STREAM :s {text} {{ ?a ?b ?c }} }}").windows
    assert window.scope == scope
    assert window.content is Content.BAG


def test_policies() -> None:
    """A2: ISTREAM; R1: on change; R3: always."""
    query = asked("SELECT * { STREAM :s [RANGE 1s] { ?a :p ?b } }")
    assert query.output is OutputOperator.ISTREAM
    assert query.report == ON_CHANGE
    stepped = "SELECT * { STREAM :s [RANGE 1s SLIDE 1s] { ?a :p ?b } %s }"
    assert asked(stepped % "").report == ON_CLOSE
    # One window that moves with every element keeps the query eager.
    assert asked(stepped % "STREAM :t [NOW] {}").report == ON_CHANGE


def test_stream_blocks_and_static_patterns() -> None:
    query = asked(
        "SELECT ?a FROM NAMED <urn:x:g> { ?a :knows ?b STREAM :s [NOW] { ?b :at ?c }"
        " OPTIONAL { STREAM :s [RANGE 1s] { ?c :at ?d } } GRAPH <urn:x:g> { ?d :p ?e }"
        " STREAM :s [NOW] { ?a :at ?c } }"
    )
    first, second = "<urn:quadweir:window:1>", "<urn:quadweir:window:2>"
    assert query.pattern == tree(
        "(project (?a) (join (leftjoin (join (bgp (triple ?a :knows ?b))"
        f" (window {first} (bgp (triple ?b :at ?c)))) (window {second} (bgp (triple ?c :at ?d))))"
        f" (graph <urn:x:g> (bgp (triple ?d :p ?e))) (window {first} (bgp (triple ?a :at ?c)))))"
    )
    assert [window.stream for window in query.windows] == [IRI(f"{EX}s")] * 2


def test_a_stream_variable_is_in_scope() -> None:
    query = asked("SELECT * { STREAM ?s [NOW] { ?a :p ?b } }")
    assert query.windows[0].stream == Variable("s")
    assert query.form.variables == tuple(map(Variable, "sab"))  # type: ignore[union-attr]


def test_the_window_unit_in_an_iri_is_no_keyword() -> None:
    query = parse("SELECT * { STREAM <http://RANGE/5s/[NOW]/SLIDE> [RANGE 5s] { ?a ?b ?c } }")
    assert query.windows[0].stream == IRI("http://RANGE/5s/[NOW]/SLIDE")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { STREAM :s { ?a ?b ?c } }",
        "SELECT * { STREAM :s [RANGE 5s STEP 1s] { ?a ?b ?c } }",
        "SELECT * { STREAM :s [SLIDE 5s STEP 1s] { ?a ?b ?c } }",
        "SELECT * { STREAM s [NOW] { ?a ?b ?c } }",
        "SELECT * { STREAM :s [TRIPLES 0] { ?a ?b ?c } }",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(text, "cqels")
    assert caught.value.span is not None


# --- CQELS 2 --------------------------------------------------------------------------------------

SECOND = (
    "REGISTER QUERY q AS SELECT ?a FROM STREAM Sensors [RANGE 10s] { STREAM Sensors { ?a :p 1 } }"
)


@pytest.mark.parametrize("dialect", [None, "cqels"])
def test_cqels_2_is_recognised_and_refused(dialect: str | None) -> None:
    with pytest.raises(UnsupportedError) as caught:
        asked(SECOND, dialect)
    assert "tumbles" in (caught.value.detail or "")
    assert "cqels2" in (caught.value.hint or "")
    assert caught.value.span is not None


def test_cqels_2_on_request() -> None:
    query = asked(SECOND, "cqels2")
    assert query.name == "q"
    assert query.windows[0].scope == TimeScope(range_ms=10_000, step_ms=10_000)
    assert query.windows[0].stream == IRI("Sensors")
    assert query.pattern == tree(
        "(project (?a) (window <urn:quadweir:window:1> (bgp (triple ?a :p 1))))"
    )


def test_cqels_2_binds_bare_patterns_to_the_only_stream() -> None:
    query = asked("SELECT ?a FROM STREAM :s [RANGE 10s STEP 5s] { ?a :p 1 }", "cqels2")
    assert query.windows[0].scope == TimeScope(range_ms=10_000, step_ms=5_000)
    assert query.pattern == tree(
        "(project (?a) (window <urn:quadweir:window:1> (bgp (triple ?a :p 1))))"
    )
    static = asked(
        "SELECT ?a FROM STREAM :s [SLIDE 10s STEP 5s] FROM <urn:x:g> { ?a :p 1 STREAM :s {} }",
        "cqels2",
    )
    assert static.pattern == tree(
        "(project (?a) (join (bgp (triple ?a :p 1)) (window <urn:quadweir:window:1> (bgp))))"
    )


@pytest.mark.parametrize("dialect", [None, "cqels2"])
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT ?a FROM STREAM :s [RANGE 9s] { SEQ({ ?a :p 1 } ; { ?a :p 2 }) }", "SEQ"),
        ("SELECT ?a FROM STREAM :s [RANGE 9s] { STREAM :s { ?a :p 1 } seq { ?a :p 2 } }", "SEQ"),
        ("SELECT ?a FROM STREAM :s [PAST 9s] { STREAM :s { ?a :p 1 } }", "PAST"),
        ("SELECT ?a FROM STREAM :s [RANGE 9s FUTURE 2s] { ?a :p 1 }", "FUTURE"),
    ],
)
def test_cqels_2_event_patterns_are_explained(text: str, word: str, dialect: str | None) -> None:
    with pytest.raises(UnsupportedError) as caught:
        asked(text, dialect)
    assert caught.value.message.startswith(word)
    assert caught.value.hint
    span = caught.value.span
    assert span is not None
    line = (PREFIX + text).splitlines()[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1].upper() == word


def test_what_the_hint_about_events_says_can_be_written() -> None:
    query = asked(
        "SELECT ?a FROM STREAM :s [RANGE 9s] { STREAM :s { ?a :p ?x } STREAM :s { ?a :q ?y }"
        " FILTER(timestamp(?x) < timestamp(?y)) }",
        "cqels2",
    )
    assert query.windows[0].scope == TimeScope(range_ms=9_000, step_ms=9_000)


@pytest.mark.parametrize("text", ["[RANGE 10s]", "[RANGE PT10S]", "[range 10000 ms]"])
def test_a_cqels_2_range_tumbles(text: str) -> None:
    for body in ("{ ?a :p 1 }", "{ STREAM :s { ?a :p 1 } }"):
        query = asked(f"SELECT ?a FROM STREAM :s {text} {body}", "cqels2")
        assert query.windows[0].scope == TimeScope(range_ms=10_000, step_ms=10_000)
        assert query.report.policy is ReportPolicy.ON_CLOSE
    # The same words in CQELS-QL 1 slide.
    first = asked(f"SELECT ?a {{ STREAM :s {text} {{ ?a :p 1 }} }}", "cqels")
    assert first.windows[0].scope == TimeScope(range_ms=10_000)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?a FROM STREAM :s [NOW] { STREAM :t { ?a :p 1 } }",
        "SELECT ?a FROM STREAM :s [NOW] { STREAM :s [NOW] { ?a :p 1 } }",
        "SELECT ?a FROM STREAM :s [NOW] FROM STREAM :s [NOW] { STREAM :s { ?a :p 1 } }",
    ],
)
def test_cqels_2_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        asked(text, "cqels2")
