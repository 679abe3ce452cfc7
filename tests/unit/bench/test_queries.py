"""LSBench's queries in three dialects and the taxi query: read, explained, translated, answered."""

from functools import cache
from pathlib import Path

import pytest

import small_lsbench
from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.algebra.query import ContinuousQuery
from quadweir.commands.explain import as_text
from quadweir.errors import UnsupportedError
from quadweir.plan.explanation import explanation
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.syntax.scan import detect
from quadweir.syntax.write import declared_prefixes, write
from quadweir.testing import Answer, MemoryStream, Oracle, diff_answers
from same_names import same_names

QUERIES = Path(__file__).parents[3] / "src/quadweir/bench/queries"
NUMBERS = range(1, 13)
DIALECTS = ("rspql", "csparql", "cqels")


def text(number: int, dialect: str) -> str:
    return (QUERIES / "lsbench" / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")


@cache
def feed() -> tuple[Element, ...]:
    return tuple(small_lsbench.feed(posts=16))


@cache
def answers(number: int, dialect: str) -> list[Answer]:
    return ask(parse(text(number, dialect)))


def ask(query: ContinuousQuery) -> list[Answer]:
    static = [*small_lsbench.static(), *small_lsbench.static_by_name()]
    return Oracle(query, static=static).answers(feed())


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_query_is_read_explained_and_bounded(number, dialect):
    query = parse(text(number, dialect))
    assert detect(text(number, dialect)) == dialect
    refuse_unbounded(query)
    found = analyze(query)
    assert found.windows_unused == ()
    explained = as_text(explanation(query, dialect))
    assert all(f"<{window.name.value}>" in explained for window in query.windows)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_query_answers(number, dialect):
    assert answers(number, dialect)


@pytest.mark.parametrize("number", NUMBERS)
def test_bags_and_graphs_differ_in_multiplicity_only(number):
    """RSP-QL and CQELS-QL ask the same; only what counts as new differs, by duplicates."""

    def seen(dialect):
        return {(answer.t, answer.solution) for answer in answers(number, dialect)}

    if number == 11:
        # An average over duplicates is another average.
        assert {t for t, _ in seen("rspql")} == {t for t, _ in seen("cqels")}
    else:
        assert seen("rspql") <= seen("cqels")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_query_is_written_back_in_its_own_dialect(number, dialect):
    query = parse(text(number, dialect))
    written = write(query, dialect, prefixes=declared_prefixes(text(number, dialect)))
    assert written.warnings == ()
    assert same_names(parse(written.text)) == same_names(query)


@pytest.mark.parametrize("source", DIALECTS)
@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_query_is_translated(number, source, target):
    query = parse(text(number, source))
    written = write(query, target, prefixes=declared_prefixes(text(number, source)))
    again = parse(written.text, dialect=target)
    assert again.form == query.form
    if source != target:
        assert written.warnings


@pytest.mark.parametrize("number", NUMBERS)
def test_rspql_translated_to_cqels_asks_what_the_cqels_query_asks(number):
    written = write(parse(text(number, "rspql")), "cqels")
    aspects = {warning.aspect for warning in written.warnings}
    assert aspects == {"content", "name"}
    translated = parse(written.text, dialect="cqels")
    assert diff_answers(answers(number, "cqels"), ask(translated)) == ""


# --- the taxi query -------------------------------------------------------------------------------

TAXI = (QUERIES / "taxi.rq").read_text(encoding="utf-8")
NYC = "http://example.org/nyctaxi/"


def taxi_feed() -> list[Element]:
    """Two taxis, three rides, each paid a second after it ended."""
    pickups, dropoffs, fares = (MemoryStream(NYC + name) for name in ("pickup", "dropoff", "fare"))
    prefix = "@prefix : <http://example.org/taxi#> . "
    rides = [
        ("ride1", "one", "2013-01-01 15:11:48", "2013-01-01 15:18:10", 382, 7),
        ("ride2", "two", "2013-01-01 15:20:00", "2013-01-01 15:30:00", 600, 12),
        ("ride3", "one", "2013-01-01 15:40:00", "2013-01-01 16:00:00", 1200, 20),
    ]
    base = 1_357_053_108_000  # 15:11:48
    for number, (ride, taxi, start, end, seconds, fare) in enumerate(rides):
        pickups.add(0, f'{prefix} :{ride} :taxi :{taxi} ; :pickupTime "{start}" .')
        dropoffs.add(0, f'{prefix} :{ride} :dropoffTime "{end}" ; :tripTime {seconds} .')
        paid = f'{prefix} :trans{number} :fare {fare} ; :pickupTime "{start}" .'
        fares.add(base + (number + 1) * 1_000_000, paid)
    return [*pickups, *dropoffs, *fares]


def test_the_taxi_query_answers_as_printed():
    query = parse(TAXI)
    found = Oracle(query).run(taxi_feed())
    assert found.dead == []
    rates = {
        (
            answer.bindings["taxi"].value.rpartition("#")[2],
            round(float(answer.bindings["hourlyRate"].lexical), 3),
        )
        for answer in found.answers
    }
    # 7 / (382 / 3600) = 65.969; 12 in 10 minutes; 20 in 20 minutes and the mean of the two.
    assert {("one", 65.969), ("two", 72.0), ("one", 62.984)} <= rates


def test_the_taxi_query_is_explained_and_translated():
    query = parse(TAXI)
    explained = as_text(explanation(query, "rspql"))
    assert "the last 1000 triples" in explained
    assert "pickupTime" in explained
    assert same_names(parse(write(query, "rspql").text)) == same_names(query)
    aspects = {warning.aspect for warning in write(query, "cqels").warnings}
    assert aspects == {"content", "event-time", "output"}
    with_steps = {warning.aspect for warning in write(query, "csparql").warnings}
    assert {"step", "report", "event-time"} <= with_steps


def test_refusals_are_errors_not_wrong_text():
    with pytest.raises(UnsupportedError):
        write(parse("SELECT * { STREAM <urn:s> [ALL] { ?s ?p ?o } }"), "csparql")


def test_the_golden_cases_are_about_these_queries():
    cases = Path(__file__).parents[2] / "golden"
    for number in NUMBERS:
        assert text(number, "cqels") in (cases / f"lsbench-q{number:02}.case").read_text("utf-8")
    assert TAXI in (cases / "taxi.case").read_text("utf-8")
