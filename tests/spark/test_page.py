"""The page of the service in a real browser: users click, type and look."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from browser import Browser, running_browser
from service_client import Served, served
from tab import Tab, editor, opened_tab

pytestmark = pytest.mark.spark

ENTERS = (
    "SELECT ?who ?room ?n { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?room ; <urn:n> ?n } }"
)
HALL = "SELECT ?who ?room { STREAM <urn:doors> [RANGE 1s] { ?who <urn:enters> ?room } }"
PLACES = """PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
SELECT ?thing ?lat ?long { STREAM <urn:doors> [NOW] { ?thing geo:lat ?lat ; geo:long ?long } }"""
GRAPH = "CONSTRUCT { ?room <urn:has> ?who . ?who a <urn:Guest> } { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?room } }"
MAPPING = """prefixes:
  ex: "urn:ex:"
sources:
  readings:
    access: urn:readings
    type: stream
    referenceFormulation: jsonpath
mappings:
  reading:
    sources: readings
    s: ex:sensor/$(id)
    po:
      - [ex:value, $(v)]
"""
VIEWS = (
    "overview",
    "queries",
    "queries/enters",
    "mappings",
    "mappings/readings",
    "windows/enters",
    "letters",
)
# What would run if a text were taken for markup or an address for a link.
HOSTILE = (
    '<img src=x onerror="window.pwned=1">',
    '"><script>window.pwned=2</script>',
    "javascript:window.pwned=3",
    "</textarea><svg/onload=window.pwned=4>",
    "{{constructor.constructor('window.pwned=5')()}}",
)
NUMBERS = count(1)


@pytest.fixture(scope="module")
def running(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(spark, tmp_path_factory.mktemp("page")) as found:
        found.put_stream("urn:doors")
        found.put_stream(
            "urn:readings", source={"kind": "push"}, format="jsonl", time={"column": "at"}
        )
        found.http.put(
            "/mappings/readings", json={"text": MAPPING, "stream": "urn:made", "time": "at"}
        ).raise_for_status()
        found.put_query("enters", ENTERS)
        found.put_query("hall", HALL)
        found.put_query("made", "SELECT ?s ?v { STREAM <urn:made> [NOW] { ?s <urn:ex:value> ?v } }")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture
def tab(browser: Browser, running: Served) -> Iterator[Tab]:
    with opened_tab(browser) as found:
        yield found
        found.check()


def enter(running: Served, who: str = "ann", room: str = "hall") -> None:
    n = next(NUMBERS)
    body = f"{{ <urn:{who}> <urn:enters> <urn:{room}> ; <urn:n> {n} }}"
    running.push("urn:doors", body, "application/trig")


@contextlib.contextmanager
def entering(running: Served, push: Callable[[], None] | None = None) -> Iterator[None]:
    """Let somebody enter again and again until the block ends."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.3):
            if push is not None:
                push()
            else:
                enter(running)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def answers_shown(tab: Tab) -> int:
    return int(tab.js("Number(document.querySelector('[data-count]')?.dataset.count ?? 0)"))


# --- queries ---


def test_a_query_is_registered_by_typing_and_answers_move(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "queries")
    tab.until(f"{editor('The query')}")
    tab.js(f"{editor('The query')}.focus()")
    tab.press("a", control=True)
    tab.press("Backspace")
    tab.type("SELECT ?who ?n { STREAM <urn:doors> [NOW] { ?who <urn:n> ?n ")
    tab.until_text("CQELS-QL")
    tab.focus("#query-name")
    tab.type("typed")
    tab.click("Register")
    tab.until("location.hash === '#/queries/typed'")
    tab.until_text("running")
    with entering(running):
        tab.until("document.querySelector('.answers tbody tr')")
        before = answers_shown(tab)
        tab.until(f"Number(document.querySelector('[data-count]').dataset.count) > {before}")
    row = tab.js("document.querySelector('.answers tbody tr').innerText")
    assert "ann" in row
    tab.click("Chart", "tab")
    tab.until("document.querySelector('.chart canvas')")
    running.http.delete("/queries/typed").raise_for_status()


def test_dialects_plans_and_translations(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "queries/hall")
    tab.until_text("CQELS-QL")
    tab.click("Meaning", "tab")
    tab.until_text("Remembers")
    tab.click("Plan", "tab")
    tab.until("document.querySelector('.diagram .box[aria-label^=\"window\"]')")
    tab.click("In words", "tab")
    tab.until_text("matched before the shuffle")
    tab.click("Sharing", "tab")
    tab.until("document.querySelector('img.network-drawing')?.naturalWidth > 100")
    tab.click("Translate", "tab")
    tab.js(
        "(() => { const s = [...document.querySelectorAll('select')].find(e => e.value === 'cqels');"
        "s.value = 'rspql'; s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    tab.until(f"{editor('The translated query')}?.textContent.includes('FROM NAMED WINDOW')")


def test_a_sample_is_run_and_verified(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "queries")
    tab.write("The query", HALL)
    tab.click("Try it", "tab")
    before = running.http.get("/queries").json()["total"]
    with entering(running):
        tab.click("Run on a sample")
        tab.until_text("evaluated from scratch agree")
    assert tab.js("document.querySelectorAll('.answers tbody tr').length") > 0
    assert running.http.get("/queries").json()["total"] == before


def test_a_query_is_paused_resumed_replaced_and_removed(tab: Tab, running: Served) -> None:
    running.put_query("short", HALL)
    tab.view(running.server.url, "queries/short")
    tab.click("Pause")
    tab.until_text("Resume")
    assert running.http.get("/queries/short").json()["state"] == "paused"
    tab.click("Resume")
    tab.until_text("Pause")
    tab.write("The query", ENTERS)
    tab.until("!document.querySelector('.register button[type=submit]').disabled")
    tab.click("Replace")
    with entering(running):
        tab.until_text("?room")
    tab.until("document.querySelector('.register button[type=submit]').disabled")
    assert running.http.get("/queries/short").json()["text"] == ENTERS
    tab.click("Remove")
    tab.click("Really remove")
    tab.until("location.hash === '#/queries'")
    running.problem("GET", "/queries/short", 404)
    tab.excuse_missing("/queries/short")


def test_why_draws_what_an_answer_rests_on(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "queries/hall")
    with entering(running):
        tab.click("Why this answer?")
        tab.until("document.querySelector('.why .diagram .box[aria-label^=\"urn:doors\"]')")
    labels = tab.js(
        "[...document.querySelectorAll('.why .box')].map(e => e.getAttribute('aria-label'))"
    )
    assert any("<urn:ann> <urn:enters> <urn:hall>" in each for each in labels)
    tab.press("Escape")
    tab.until("!document.querySelector('.why')")


def test_a_map_and_a_graph(tab: Tab, running: Served) -> None:
    running.put_query("places", PLACES)
    running.put_query("graph", GRAPH)

    def push() -> None:
        geo = "http://www.w3.org/2003/01/geo/wgs84_pos#"
        for name, lat, long in (("a", 52.1, 5.0), ("b", 52.2, 5.1)):
            body = f'{{ <urn:{name}> <{geo}lat> "{lat}" ; <{geo}long> "{long}" }}'
            running.push("urn:doors", body, "application/trig")
        enter(running)

    tab.view(running.server.url, "queries/places")
    with entering(running, push):
        tab.click("Map", "tab")
        tab.until("document.querySelectorAll('.map .point').length === 2")
        tab.view(running.server.url, "queries/graph")
        tab.click("Graph", "tab")
        tab.until("document.querySelectorAll('.diagram .box').length === 2")
    tops = tab.js(
        "[...document.querySelectorAll('.diagram .box')].map(e => e.getAttribute('aria-label'))"
    )
    assert sorted(tops) == ["ann; Guest", "hall"]
    for name in ("places", "graph"):
        running.http.delete(f"/queries/{name}").raise_for_status()


def test_answers_are_held_and_downloaded(tab: Tab, running: Served, tmp_path: Path) -> None:
    tab.browser.call(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path),
        browserContextId=tab.context, eventsEnabled=True,
    )  # fmt: skip
    tab.view(running.server.url, "queries/enters")
    with entering(running):
        tab.until("document.querySelector('.answers tbody tr')")
        tab.click("Hold")
        tab.until_text("held")
        shown = answers_shown(tab)
        tab.js("new Promise(done => setTimeout(done, 1500))")
        assert answers_shown(tab) == shown
        tab.click("Go on")
        tab.until(f"Number(document.querySelector('[data-count]').dataset.count) > {shown}")
    tab.click("Download")
    deadline = 100
    while not (found := [*tmp_path.glob("*.jsonl")]) and deadline:
        deadline -= 1
        tab.js("new Promise(done => setTimeout(done, 100))")
    lines = found[0].read_text().splitlines()
    assert json.loads(lines[0])["bindings"]["who"]["value"] == "urn:ann"


# --- the other views ---


def test_the_overview_shows_what_feeds_what(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "overview")
    tab.until("document.querySelector('[data-id=\"query:enters\"]')")
    kinds = tab.js(
        "[...new Set([...document.querySelectorAll('.box')].map(e => e.dataset.id.split(':')[0]))]"
    )
    assert set(kinds) >= {"stream", "mapping", "template", "query"}
    with entering(running):
        tab.until("document.querySelector('.arrow .moving')")
        tab.until("document.querySelector('.chart canvas')")
        tab.click_on('[data-id="stream:urn:doors"]')
        tab.click("Look into the stream")
        tab.until("document.querySelector('.statements li')")
    assert "enters" in tab.js("document.querySelector('.statements').innerText")


def test_a_record_is_mapped_while_typing(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "mappings")
    tab.write("The mapping", MAPPING)
    tab.write("Sample records", '{"id": "s1", "v": 20}\n{"id": "s2", "v": 21}')
    tab.until("document.querySelectorAll('.triples').length === 2")
    tab.until_text("Record 2")
    assert "20" in tab.js("document.querySelector('.triples').innerText")
    tab.write("Sample records", '{"id": "s1"')
    tab.until("document.querySelector('.mapping-desk .problem')")
    tab.write("The mapping", MAPPING.replace("po:", "poo: [").replace("$(v)", "$("))
    tab.until_text("The mapping has a mistake.")


def test_rml_with_graphs_is_mapped_record_by_record(running: Served) -> None:
    text = """@prefix rml: <http://w3id.org/rml/> . @base <urn:m> .
    <#A> a rml:TriplesMap ; rml:logicalSource [ rml:source <urn:readings> ; rml:referenceFormulation rml:JSONPath ] ;
      rml:subjectMap [ rml:template "urn:a:{id}" ; rml:graphMap [ rml:template "urn:g:{id}" ] ] ;
      rml:predicateObjectMap [ rml:predicate <urn:p> ; rml:objectMap [ rml:reference "id" ] ] .
    <#B> a rml:TriplesMap ; rml:logicalSource [ rml:source <urn:other> ; rml:referenceFormulation rml:JSONPath ] ;
      rml:subjectMap [ rml:template "urn:b:{id}" ] ;
      rml:predicateObjectMap [ rml:predicate <urn:p> ; rml:objectMap [ rml:reference "id" ] ] ."""
    records = ['{"id": "1"}', "{", '{"id": "2"}']
    asked = {"text": text, "records": records, "source": "urn:readings"}
    found = running.http.post("/mappings/preview", json=asked).json()
    assert [each["triples"] for each in found["records"]] == [
        ['<urn:a:1> <urn:p> "1" <urn:g:1> .'], [], ['<urn:a:2> <urn:p> "2" <urn:g:2> .'],
    ]  # fmt: skip
    assert [each["error"] is None for each in found["records"]] == [True, False, True]
    asked["source"] = "urn:nowhere"
    assert running.http.post("/mappings/preview", json=asked).json()["problem"]["hint"] is None


def test_windows_show_what_they_hold(tab: Tab, running: Served) -> None:
    tab.view(running.server.url, "windows/hall")
    with entering(running):
        tab.until("document.querySelector('.timeline .mark')")
    assert "enters" in tab.js("document.querySelector('.statements').innerText")


def test_dead_letters_are_tried_again(tab: Tab, running: Served) -> None:
    body = '{"id": "x", "v": 1}'
    running.push("urn:readings", body, "application/json")
    tab.view(running.server.url, "letters")
    tab.click_on("button.link")
    tab.click("Dry run")
    tab.until_text("It would become 1 triple")
    tab.click("Open in the mapping editor")
    tab.until("location.hash === '#/mappings/readings'")
    tab.until(f"{editor('Sample records')}?.textContent.includes('\"x\"')")


# --- what must never happen ---


def test_hostile_texts_are_only_texts(tab: Tab, running: Served) -> None:
    def push() -> None:
        literals = " , ".join(json.dumps(each) for each in HOSTILE)
        body = (
            f"{{ <javascript:alert(6)> <urn:enters> <javascript:alert(7)> ; <urn:n> {literals} }}"
        )
        running.push("urn:doors", body, "application/trig")

    letter = json.dumps({"id": HOSTILE[0], "v": HOSTILE[1]})
    running.push("urn:readings", letter, "application/json")
    running.put_query(
        "graph",
        GRAPH.replace("?who a <urn:Guest>", "?who <urn:says> ?n").replace(
            "?room }", "?room ; <urn:n> ?n }"
        ),
    )
    with entering(running, push):
        tab.view(running.server.url, "queries/enters")
        tab.until_text(HOSTILE[0])
        tab.until_text(HOSTILE[1])
        tab.click("Why this answer?")
        tab.until("document.querySelector('.why .box')")
        for view in ("queries/graph", "windows/hall", "letters", "overview"):
            tab.view(running.server.url, view)
            if view == "queries/graph":
                tab.click("Graph", "tab")
                tab.until("document.querySelector('.diagram .box')")
            if view == "letters":
                tab.until_text("onerror")
                tab.click_on("button.link")
                tab.click("Dry run")
                tab.until_text("It would become")
            if view == "overview":
                tab.click_on('[data-id="stream:urn:doors"]')
                tab.click("Look into the stream")
                tab.until_text("onerror")
    assert tab.js("window.pwned") is None
    assert tab.js("document.querySelectorAll('main img[src=x], main script').length") == 0
    assert not tab.js("[...document.links].filter(each => !/^https?:/.test(each.href)).length")
    running.http.delete("/queries/graph").raise_for_status()


def test_every_view_fits_and_names_its_parts(tab: Tab, running: Served) -> None:
    enter(running)
    for width in (1280, 360):
        tab.size(width)
        for view in VIEWS:
            tab.view(running.server.url, view)
            tab.until("document.querySelector('main > :not(h1)')")
            tab.js("new Promise(done => setTimeout(done, 700))")
            over = tab.js("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{view} is {over} pixels wider than {width}"
            nameless = tab.js(_NAMELESS)
            assert not nameless, f"{view}: no accessible names: {nameless}"


_NAMELESS = """[...document.querySelectorAll('button, a[href], input, select, textarea, [role=button], [role=img], img')]
  .filter(each => each.getBoundingClientRect().width > 0)
  .filter(each => !(each.getAttribute('aria-label') || each.getAttribute('alt') || each.labels?.[0]?.textContent?.trim()
    || each.textContent.trim()))
  .map(each => each.outerHTML.slice(0, 120))"""


def test_the_demo_opens_its_page_on_the_motorway(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quadweir.cli", "demo", "--page", "--port", "0"]
    with subprocess.Popen(
        [*command, "--output", str(tmp_path / "demo")], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            urls = (re.search(r"The page: (http://\S+)", line) for line in process.stderr)
            url = next(each[1] for each in urls if each)
            with opened_tab(browser) as tab:
                tab.open(url)
                tab.until("document.querySelector('[data-id=\"query:jams\"]')")
                tab.until("document.querySelector('.arrow .moving')", 240)
                tab.view(url.rstrip("/"), "queries/places")
                tab.until("document.querySelector('.answers tbody tr')", 240)
                tab.check()
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(120)
    assert ended in (0, 130)
