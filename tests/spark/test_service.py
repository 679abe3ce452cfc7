"""The service over HTTP, with networks on Spark: every endpoint, with good and with bad requests."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from websockets.sync.client import connect

from pages import blocks
from quadweir import Client, QuerySyntaxError
from quadweir.jelly import write_jelly
from quadweir.service.answers import topic_of
from quadweir.service.settings import ServiceLimits
from quadweir.sources.statements import parse_statement
from service_client import Served, path_of, served

pytestmark = pytest.mark.spark

REPO = Path(__file__).parents[2]

ENTERS = "SELECT ?who ?room { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?room } }"
GRAPHS = """CONSTRUCT { ?room <urn:has> ?who } { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?room } }"""
HALL = "SELECT ?who { STREAM <urn:doors> [RANGE 1m] { ?who <urn:enters> <urn:hall> } }"


MAPPING = """
prefixes:
  ex: "urn:"
sources:
  readings:
    access: urn:readings
    type: stream
    referenceFormulation: jsonpath
mappings:
  reading:
    sources: readings
    s: urn:sensor:$(id)
    po:
      - [ex:value, $(v)]
"""


@pytest.fixture(scope="module")
def running(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(spark, tmp_path_factory.mktemp("service")) as found:
        found.put_stream("urn:doors")
        found.put_query("enters", ENTERS)
        yield found


def enter(running: Served, who: str, room: str = "hall", **headers: str) -> dict[str, Any]:
    return running.push("urn:doors", f"<urn:{who}> <urn:enters> <urn:{room}> .", **headers)


def who(event: dict[str, Any]) -> str:
    found: str = event["data"]["bindings"]["who"]["value"]
    return found


def test_what_is_pushed_is_answered_as_events(running: Served) -> None:
    with running.events("/queries/enters/answers") as events:
        enter(running, "ann")
        first = next(events)
        enter(running, "bob")
        second = next(events)
    assert (first["event"], who(first), who(second)) == ("answer", "urn:ann", "urn:bob")
    assert first["data"]["sign"] == "+"
    with running.events("/queries/enters/answers", **{"last-event-id": first["id"]}) as events:
        assert next(events) == second
    with running.events("/queries/enters/answers?from=start") as events:
        assert first in [*islice(events, 1)]


def test_other_forms_of_answers(running: Served) -> None:
    with running.events("/queries/enters/answers") as events:
        enter(running, "carl", "attic")
        known = next(events)
    path = "/queries/enters/answers"
    lines = running.http.get(path, params={"as": "ndjson", "follow": "false"}).text.splitlines()
    assert json.loads(lines[-1]) == {"id": known["id"], **known["data"]}
    report = running.http.get(path)
    assert report.headers["content-type"] == "application/sparql-results+json"
    assert report.json()["head"] == {"vars": ["who", "room"]}
    assert report.json()["results"]["bindings"] == [known["data"]["bindings"]]
    url = running.server.url.replace("http", "ws") + path
    with connect(f"{url}?from=start", subprotocols=["quadweir"]) as socket:  # type: ignore[list-item]
        found = json.loads(socket.recv(60))
        while found["id"] != known["id"]:
            found = json.loads(socket.recv(60))
    assert found == known


def test_the_statements_of_a_stream_come_as_messages_and_resume(running: Served) -> None:
    path = f"{path_of('urn:doors')}/events"
    url = running.server.url.replace("http", "ws") + path
    with connect(url) as socket:
        begin = json.loads(socket.recv(60))
        assert begin["event"] == "begin"
        enter(running, "wanda")
        first = json.loads(socket.recv(60))
        assert first["data"]["graph"] == ["<urn:wanda> <urn:enters> <urn:hall> ."]
        enter(running, "willy")
        second = json.loads(socket.recv(60))
    with connect(f"{url}?from={first['id']}") as socket:
        assert json.loads(socket.recv(60))["id"] == first["id"]
        assert json.loads(socket.recv(60)) == second
    with running.events(path, **{"last-event-id": first["id"]}) as events:
        assert next(events)["id"] == second["id"]


def test_triples_of_a_construct(running: Served) -> None:
    running.put_query("graphs", GRAPHS)
    with running.events("/queries/graphs/answers") as events:
        enter(running, "dora")
        assert next(events)["data"]["graph"] == ["<urn:hall> <urn:has> <urn:dora> ."]
    found = running.http.get("/queries/graphs/answers")
    assert found.headers["content-type"].startswith("application/n-quads")
    assert found.text == "<urn:hall> <urn:has> <urn:dora> .\n"


def test_many_queries_come_in_one_call(running: Served) -> None:
    queries = {f"room{n}": ENTERS.replace("?room }", f"<urn:r{n}> }}") for n in range(50)}
    queries |= {"room7": "SELECT", "bad name": ENTERS, "far": ENTERS.replace("doors", "moon")}
    found = running.http.post("/queries", json={"queries": queries}).json()
    assert len(found["registered"]) == 49
    assert set(found["refused"]) == {"room7", "bad name", "far"}
    assert found["refused"]["room7"]["places"][0]["line"] == 1
    again = running.http.post("/queries", json={"queries": {"room1": HALL}}).json()
    assert again["refused"]["room1"]["code"] == "QW-CONFLICT"
    replaced = {"queries": {"room1": HALL}, "replace": True}
    assert running.http.post("/queries", json=replaced).json()["registered"] == ["room1"]
    listed = running.http.get("/queries", params={"limit": 10, "after": "room2"}).json()
    assert len(listed["queries"]) == 10
    assert all(each["name"] > "room2" for each in listed["queries"])
    # Nothing new runs for them: they share the network.
    assert {each["network"] for each in listed["queries"]} == {"n1"}


def test_a_query_is_checked_before_it_is_registered(running: Served) -> None:
    good = running.http.post("/check", json={"text": HALL}).json()
    assert (good["ok"], good["dialect"], good["form"]) == (True, "CQELS-QL", "SELECT")
    assert (good["streams"], good["network"]) == (["urn:doors"], "n1")
    assert "matched before the shuffle" in good["plan"]
    warned = running.http.post("/check", json={"text": HALL.replace("SELECT ?who", "SELECT ?wo")})
    assert "?wo" in warned.json()["warnings"][0]["message"]
    bad = running.http.post("/check", json={"text": "SELECT ?x {\n  oops\n}"}).json()
    assert not bad["ok"]
    assert bad["problem"]["places"][0]["line"] == 2
    unbounded = (
        "SELECT * { STREAM <urn:doors> [ALL] { ?x ?y ?z } STREAM <urn:doors> [ALL] { ?z ?v ?w } }"
    )
    refused = running.http.post("/check", json={"text": unbounded}).json()["problem"]
    assert refused["code"] == "QW-UNBOUNDED"
    dry = running.http.put("/queries/dry", params={"dryRun": "true"}, json={"text": HALL})
    assert dry.json()["ok"]
    running.problem("GET", "/queries/dry", 404)
    bulk = {"queries": {"a": HALL, "b": "oops"}}
    checked = running.http.post("/queries", params={"dryRun": "true"}, json=bulk).json()["checked"]
    assert (checked["a"]["ok"], checked["b"]["ok"]) == (True, False)
    written = running.http.post("/translate", json={"text": HALL, "to": "rspql"}).json()
    assert "WINDOW" in written["text"]


def test_a_query_pauses_goes_on_and_leaves(running: Served) -> None:
    running.put_query("leaving", ENTERS)
    with running.events("/queries/leaving/answers") as events:
        paused = running.http.patch("/queries/leaving", json={"state": "paused"})
        assert paused.json()["state"] == "paused"
        enter(running, "unseen")
        with running.events("/queries/enters/answers?from=start") as others:
            assert any(who(each) == "urn:unseen" for each in others)
        running.http.patch("/queries/leaving", json={"state": "running"})
        enter(running, "seen")
        assert who(next(events)) == "urn:seen"
        assert running.http.delete("/queries/leaving").status_code == 204
        assert next(events)["event"] == "end"
        assert next(events, None) is None
    running.problem("GET", "/queries/leaving", 404)


def test_a_query_over_other_streams_has_a_network_of_its_own(running: Served) -> None:
    for name in ("one", "two"):
        running.put_stream(f"urn:{name}")
    text = """SELECT ?x ?z { STREAM <urn:one> [RANGE 1m] { ?x <urn:p> ?y }
      STREAM <urn:two> [RANGE 1m] { ?y <urn:p> ?z } }"""
    home = running.put_query("both", text)["network"]
    assert home != "n1"
    alone = "SELECT ?x { STREAM <urn:two> [NOW] { ?x <urn:p> ?y } }"
    assert running.put_query("alone", alone)["network"] == home
    running.problem("DELETE", path_of("urn:two"), 409)
    with running.events("/queries/both/answers") as events:
        running.push("urn:one", "<urn:a> <urn:p> <urn:b> .")
        running.push("urn:two", "<urn:b> <urn:p> <urn:c> .")
        assert next(events)["data"]["bindings"]["z"]["value"] == "urn:c"
    running.http.delete("/queries/both")
    running.http.delete("/queries/alone")
    with running.events("/overview/events") as overviews:
        networks = next(overviews)["data"]["networks"]
    assert home not in [each["id"] for each in networks]
    assert running.http.delete(path_of("urn:two")).status_code == 204


def test_what_runs_is_shown(running: Served) -> None:
    with running.events("/overview/events") as events:
        seen = next(events)["data"]
    assert seen["service"]["ready"]
    assert seen["sample"]["networks"]["n1"]["queries"] >= 1
    found = running.http.get("/overview").json()
    kinds = {each["id"]: each["kind"] for each in found["nodes"]}
    assert kinds["stream:urn:doors"] == "stream"
    assert kinds["query:enters"] == "query"
    assert all(each["from"] in kinds and each["to"] in kinds for each in found["edges"])
    history = found["history"]
    assert len(history["t"]) == len(history["networks"]["n1"]["batch_ms"])
    assert running.http.get("/overview?history=false&queries=0").json()["more_queries"] >= 1
    explain = "/queries/enters/explain"
    explained = running.http.get(explain).json()
    assert "template" in explained["text"]
    assert explained["meaning"]["dialect"] == "CQELS-QL"
    assert explained["stages"][0]["tree"]
    assert explained["template"]["streams"] == ["urn:doors"]
    assert running.http.get(f"{explain}?as=text").text == explained["text"]
    drawings = {running.http.get(f"{explain}?as={each}").text for each in ("svg", "plan")}
    assert len(drawings) == 2
    assert all(each.startswith("<svg") for each in drawings)
    assert "queries" in running.http.get("/networks/n1/explain").text
    assert running.http.get("/queries/enters/metrics").json()["answers"] >= 0
    assert "quadweir_network_queries" in running.http.get("/metrics").text
    assert running.http.get("/healthz").text == "ok"
    assert running.http.get("/readyz").text == "ok"
    assert running.http.get("/session").json()["role"] == "admin"
    assert "/queries/{name}" in running.http.get("/openapi.json").json()["paths"]


def test_windows_and_reasons_are_shown(running: Served) -> None:
    running.put_query("hall", HALL)
    with running.events(f"{path_of('urn:doors')}/events") as elements:
        enter(running, "gus")
        seen = next(elements)
        assert seen["data"]["graph"] == ["<urn:gus> <urn:enters> <urn:hall> ."]
    with running.events("/queries/hall/answers?from=start") as events:
        answer = next(each for each in events if who(each) == "urn:gus")
    found = running.http.post("/queries/hall/why", json=answer["data"]).json()
    assert found["triples"][0]["triple"] == "<urn:gus> <urn:enters> <urn:hall> ."
    assert found["triples"][0]["elements"][0]["stream"] == "urn:doors"
    held = running.http.get("/queries/hall/windows").json()
    assert held["windows"][0]["count"] >= 1
    assert "urn:gus" in str(held["windows"][0]["newest"])
    verified = running.http.post("/queries/hall/verify").json()
    assert verified["difference"] is None
    running.put_query("graphs", GRAPHS)
    running.problem("POST", "/queries/graphs/verify", 400)
    names = [each["name"] for each in running.http.get("/queries?limit=10000").json()["queries"]]
    assert not [name for name in names if name.startswith("_")]
    running.problem("POST", "/queries/hall/why", 400, json={"t": 5})
    running.problem("GET", f"{path_of('urn:none')}/events", 404)


def test_records_are_mapped(running: Served) -> None:
    running.put_stream("urn:readings", source={"kind": "push"}, format="jsonl")
    sample = {"text": MAPPING, "records": ['{"id": "s1", "v": 7}', '{"v": 8}']}
    tried = running.http.post("/mappings/preview", json=sample).json()
    assert tried["problem"] is None, tried
    assert tried["records"][0]["triples"] == ['<urn:sensor:s1> <urn:value> "7" .']
    put = running.http.put("/mappings/readings", json={"text": MAPPING, "stream": "urn:mapped"})
    assert put.status_code == 201, put.text
    listed = running.http.get("/mappings").json()["mappings"]
    assert listed[0]["streams"] == ["urn:mapped"]
    running.put_query("values", "SELECT ?v { STREAM <urn:mapped> [NOW] { ?s <urn:value> ?v } }")
    with running.events("/queries/values/answers") as events:
        running.push("urn:readings", '[{"id": "s1", "v": 7}]', "application/json")
        assert next(events)["data"]["bindings"]["v"]["value"] == "7"
    running.problem("DELETE", "/mappings/readings", 409)
    running.problem("DELETE", path_of("urn:readings"), 409)


def test_the_time_of_a_record_is_a_member_a_header_or_the_arrival(running: Served) -> None:
    readings = {"source": {"kind": "push"}, "format": "jsonl"}
    for name, time_ in (("member", {"column": "at"}), ("header", "arrival"), ("none", "arrival")):
        running.put_stream(f"urn:by-{name}", **readings, time=time_)
        text = MAPPING.replace("urn:readings", f"urn:by-{name}")
        put = {"text": text, "stream": f"urn:mapped-by-{name}"}
        assert running.http.put(f"/mappings/by-{name}", json=put).status_code == 201
        query = f"SELECT ?v {{ STREAM <urn:mapped-by-{name}> [NOW] {{ ?s <urn:value> ?v }} }}"
        running.put_query(f"by-{name}", query)
        headers = {"quadweir-time": "2026-03-03T08:00:00Z"} if name == "header" else {}
        record = '{"id": "s1", "v": 7, "at": "2026-03-03T08:00:00Z"}'
        with running.events(f"/queries/by-{name}/answers") as events:
            began = time.time() * 1000
            running.push(f"urn:by-{name}", f"[{record}]", "application/json", **headers)
            t = next(events)["data"]["t"]
        assert t >= began - 1 if name == "none" else t == 1772524800000
        assert running.http.delete(f"/queries/by-{name}").status_code == 204


def test_messages_and_jelly_are_answered(running: Served) -> None:
    running.put_stream("urn:messages")
    running.put_query("said", "SELECT ?s { STREAM <urn:messages> [NOW] { ?s <urn:p> ?o } }")
    one, two, three = (f"<urn:{name}> <urn:p> <urn:o> ." for name in ("one", "two", "three"))
    with running.events("/queries/said/answers") as events:
        log = f'VERSION "1.2-messages"\n{one}\nMESSAGE\n{two}\n'
        assert running.push("urn:messages", log)["elements"] == 2
        body = b"".join(write_jelly([parse_statement(three)]))
        headers = {"content-type": "application/x-jelly-rdf"}
        pushed = running.http.post(path_of("urn:messages"), content=body, headers=headers)
        assert pushed.json()["elements"] == 1
        seen = {next(events)["data"]["bindings"]["s"]["value"] for _ in range(3)}
    assert seen == {"urn:one", "urn:two", "urn:three"}


def test_pushes_wait_while_too_much_waits_to_be_read(spark: SparkSession, tmp_path: Path) -> None:
    limits = ServiceLimits(push_bytes=3_000)
    with served(spark, tmp_path, limits=limits) as found:
        found.put_stream("urn:doors")
        found.put_query("enters", ENTERS)
        refused = 0
        with found.events("/queries/enters/answers") as events:
            headers = {"content-type": "text/turtle"}
            number = 0
            while number < 60 or not refused:
                body = f"<urn:n{number}> <urn:enters> <urn:hall> ."
                pushed = found.http.post(path_of("urn:doors"), content=body, headers=headers)
                if pushed.status_code == 202:
                    number += 1
                    continue
                assert pushed.status_code == 429, pushed.text
                assert int(pushed.headers["retry-after"]) >= 1
                refused += 1
                # The reader goes on: what was refused is taken later.
                who(next(events))
            seen = found.http.get("/queries/enters/answers?as=ndjson&from=start&follow=false").text
            while f"urn:n{number - 1}>" not in seen and f'urn:n{number - 1}"' not in seen:
                next(events)
                path = "/queries/enters/answers?as=ndjson&from=start&follow=false"
                seen = found.http.get(path).text
        assert [f'"urn:n{n}"' in seen for n in range(number)] == [True] * number


@pytest.mark.parametrize(
    ("method", "path", "status", "options"),
    [
        ("GET", "/nothing", 404, {}),
        ("GET", "/queries/none", 404, {}),
        ("GET", "/queries/none/answers", 404, {}),
        ("GET", "/queries/enters/answers?as=csv", 400, {}),
        ("GET", "/queries/enters/answers?as=sse&from=yesterday", 400, {}),
        ("GET", "/queries/none/explain", 404, {}),
        ("GET", "/queries/none/metrics", 404, {}),
        ("DELETE", "/queries/none", 404, {}),
        ("PATCH", "/queries/none", 404, {"json": {"state": "paused"}}),
        ("PATCH", "/queries/enters", 400, {"json": {"state": "asleep"}}),
        ("PUT", "/queries/-bad", 400, {"json": {"text": ENTERS}}),
        ("PUT", "/queries/x", 400, {"json": {"text": "SELECT"}}),
        ("PUT", "/queries/x", 400, {"json": {"text": 5}}),
        ("PUT", "/queries/x", 400, {"json": {"text": ENTERS, "colour": "red"}}),
        ("PUT", "/queries/x", 400, {"json": [1]}),
        ("PUT", "/queries/x", 415, {"content": b"x", "headers": {"content-type": "a/b"}}),
        ("PUT", "/queries/x", 400, {"content": b"\xff", "headers": {"content-type": "text/plain"}}),
        ("PUT", "/queries/x", 422, {"json": {"text": "SELECT ?x { ?x ?y ?z }"}}),
        ("POST", "/queries", 400, {"json": {"queries": [1]}}),
        ("POST", "/queries", 415, {"content": b"{}"}),
        ("POST", "/check", 415, {"content": b"{}", "headers": {"content-type": "a/b"}}),
        ("POST", "/translate", 400, {"json": {"text": ENTERS}}),
        ("POST", "/translate", 400, {"json": {"text": ENTERS, "to": "english"}}),
        ("GET", path_of("urn:none"), 404, {}),
        ("DELETE", path_of("urn:none"), 404, {}),
        ("POST", path_of("urn:none"), 404, {"content": b"x"}),
        ("POST", path_of("urn:doors"), 415, {"content": b"x"}),
        ("PUT", path_of("no iri"), 400, {}),
        ("PUT", path_of("urn:x"), 400, {"json": {"source": {"kind": "push"}, "format": "word"}}),
        (
            "PUT",
            path_of("urn:doors"),
            409,
            {"json": {"format": "jsonl", "source": {"kind": "push"}}},
        ),
        ("GET", "/mappings/none", 404, {}),
        ("DELETE", "/mappings/none", 404, {}),
        ("PUT", "/mappings/x", 400, {"json": {"text": "not Turtle"}}),
        ("PUT", "/mappings/x", 400, {"json": {"stream": "urn:x"}}),
        ("POST", "/mappings/preview", 400, {"json": {"text": "x", "records": "y"}}),
        ("GET", "/networks/n99/explain", 404, {}),
        ("GET", "/queries?limit=many", 400, {}),
        ("GET", "/queries?limit=" + "9" * 5_000, 400, {}),
        ("GET", "/queries/enters/answers?as=sse&from=1.99999999999999999999.1", 400, {}),
        ("GET", "/queries/enters/answers?as=sse&from=" + "9" * 5_000, 400, {}),
        ("DELETE", "/queries", 405, {}),
    ],
)
def test_bad_requests_are_refused(
    running: Served, method: str, path: str, status: int, options: dict[str, Any]
) -> None:
    running.problem(method, path, status, **options)


def test_a_push_with_a_mistake_is_refused_as_a_whole(running: Served) -> None:
    body = "1 <urn:a> <urn:enters> <urn:b> .\n2 <urn:a> oops"
    headers = {"content-type": "text/x-timed-lines"}
    found = running.problem("POST", path_of("urn:doors"), 400, content=body, headers=headers)
    assert found["places"][0]["line"] == 2


def test_a_repeated_push_is_taken_once(running: Served) -> None:
    first = enter(running, "eve", **{"idempotency-key": "eve-1"})
    again = enter(running, "eve", **{"idempotency-key": "eve-1"})
    assert again == {**first, "repeated": True}
    with running.events("/queries/enters/answers?from=start") as events:
        enter(running, "last-of-all")
        seen = []
        for each in events:
            seen.append(who(each))
            if seen[-1] == "urn:last-of-all":
                break
    assert seen.count("urn:eve") == 1


def wait_a_little(process: subprocess.Popen[bytes]) -> None:
    """Wait for a moment, or for the end of a process."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.1)


def test_the_commands_of_the_page_work(running: Served, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page = REPO / "docs" / "reference" / "service.md"
    script = next(block for block in blocks(page, "bash") if "curl" in block)
    declare, register, listen, push = script.replace("\\\n", " ").strip().splitlines()
    shown = tmp_path / "shown"

    def command(line: str) -> list[str]:
        here = line.removesuffix("&").replace("http://127.0.0.1:7474", running.server.url)
        return shlex.split(here.replace("urn:doors", "urn:curled"))

    for line in (declare, register):
        subprocess.run([*command(line), "--fail-with-body"], check=True, capture_output=True)
    with shown.open("wb") as out, subprocess.Popen(command(listen), stdout=out) as listening:
        topic = topic_of("visits")
        deadline = time.monotonic() + 60
        while not running.service.hub.has(topic):
            assert time.monotonic() < deadline, "curl does not subscribe"
            wait_a_little(listening)
        subprocess.run([*command(push), "--fail-with-body"], check=True, capture_output=True)
        while b"urn:ann" not in shown.read_bytes():
            assert time.monotonic() < deadline + 60, "no answer came"
            wait_a_little(listening)
        listening.terminate()
    assert b"event: answer" in shown.read_bytes()


def test_more_commands_of_the_page_work(running: Served, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page = REPO / "docs" / "reference" / "service.md"
    _, *scripts = (block for block in blocks(page, "bash") if "curl" in block)
    for script in scripts:
        here = script.replace("http://127.0.0.1:7474", running.server.url)
        here = here.replace("curl ", "curl -sS --fail-with-body ")
        # Names of other tests differ.
        for name in ("readings", "values"):
            here = here.replace(f"urn:{name}", f"urn:more-{name}")
            here = here.replace(f"/{name}", f"/more-{name}")
        found = subprocess.run(["bash", "-ec", here], cwd=tmp_path, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr
    running.problem("GET", "/queries/more-values", 404)


def test_the_python_of_the_page_works(running: Served) -> None:
    page = REPO / "docs" / "reference" / "service.md"
    for block in blocks(page, "python"):
        exec(block.replace("http://127.0.0.1:7474", running.server.url), {})
    assert "guests" not in str(running.http.get("/queries?limit=10000").json())


def test_a_client_in_python(running: Served) -> None:
    with Client(running.server.url) as client:
        client.declare("urn:rooms")
        client.register("warm", "SELECT ?room { STREAM <urn:rooms> [NOW] { ?room <urn:is> ?t } }")
        answers = client.answers("warm", since="start")
        client.push("urn:rooms", "<urn:hall> <urn:is> <urn:warm> .", key="one")
        first = next(answers)
        assert first.bindings == {"room": {"type": "uri", "value": "urn:hall"}}
        answers.close()
        client.push("urn:rooms", "<urn:attic> <urn:is> <urn:warm> .")
        (again,) = islice(client.answers("warm", since=first.id), 1)
        assert again.bindings["room"]["value"] == "urn:attic"
        assert client.report("warm")["results"]["bindings"]
        client.pause("warm")
        assert client.query("warm")["state"] == "paused"
        client.resume("warm")
        assert "warm" in [each["name"] for each in client.queries()]
        with pytest.raises(QuerySyntaxError) as caught:
            client.register("bad", "SELECT ?x {\n oops }")
        assert caught.value.span is not None
        assert caught.value.span.line == 2
        client.unregister("warm")


def test_static_data_and_schema_are_changed_while_queries_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    turtle = {"content-type": "text/turtle"}
    with served(spark, tmp_path) as found:
        found.put_stream("urn:doors")
        found.http.put("/static/rooms", content="<urn:hall> <urn:on> 1 .", headers=turtle)
        text = "SELECT ?who ?floor { STREAM <urn:doors> [NOW] { ?who <urn:enters> ?r } ?r <urn:on> ?floor }"
        found.put_query("floors", text)
        kinds = "SELECT ?who { STREAM <urn:doors> [NOW] { ?who a <urn:Person> } }"
        found.put_query("kinds", kinds)
        found.http.patch("/queries/kinds", json={"state": "paused"})
        with found.events("/queries/floors/answers") as events:
            enter(found, "ann")
            assert next(events)["data"]["bindings"]["floor"]["value"] == "1"
            changed = "<urn:hall> <urn:on> 2 ."
            put = found.http.put("/static/rooms", content=changed, headers=turtle)
            assert put.json()["version"] == 3
            schema = "<urn:enters> <http://www.w3.org/2000/01/rdf-schema#domain> <urn:Person> ."
            assert found.http.put("/schema/all", content=schema, headers=turtle).is_success
            assert found.http.get("/queries/kinds").json()["state"] == "paused"
            found.http.patch("/queries/kinds", json={"state": "running"})
            with found.events("/queries/kinds/answers") as others:
                enter(found, "bob")
                # The subscriber of before goes on.
                assert next(events)["data"]["bindings"]["floor"]["value"] == "2"
                # Elements of the last batch before the change may count again.
                assert "urn:bob" in map(who, others)
    with served(spark, tmp_path) as found, found.events("/queries/floors/answers") as events:
        enter(found, "carl")
        assert next(events)["data"]["bindings"]["floor"]["value"] == "2"


def test_everything_is_there_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with served(spark, tmp_path) as first:
        first.put_stream("urn:doors")
        first.put_query("enters", ENTERS)
        first.put_query("quiet", HALL)
        first.http.patch("/queries/quiet", json={"state": "paused"})
        with first.events("/queries/enters/answers") as events:
            enter(first, "ann")
            seen = next(events)
    with served(spark, tmp_path) as second:
        states = {
            one["name"]: one["state"] for one in second.http.get("/queries").json()["queries"]
        }
        assert states == {"enters": "running", "quiet": "paused"}
        resumed = {"last-event-id": seen["id"]}
        with second.events("/queries/enters/answers", **resumed) as events:
            enter(second, "bob")
            assert who(next(events)) == "urn:bob"
        with second.events("/queries/enters/answers?from=start") as events:
            assert [who(each) for each in islice(events, 2)] == ["urn:ann", "urn:bob"]
