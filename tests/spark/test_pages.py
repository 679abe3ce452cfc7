"""The Python and console blocks of the pages run as they are shown, over small files."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import quadweir.runtime.spark.session
from command_line import main
from pages import PAGES, ROOT, blocks, commands, name_of
from quadweir.functions import REGISTERED
from quadweir.kernel.streamjoin import policies

pytestmark = pytest.mark.spark

DOORS = """\
2026-03-03T08:00:00Z <urn:door:1> <urn:openedBy> <urn:ann> .
2026-03-03T08:00:30Z <urn:door:2> <urn:openedBy> <urn:bob> .
2026-03-03T08:01:10Z <urn:door:1> <urn:openedBy> <urn:bob> .
"""
# The files that pages name, so that a reader would have them.
FILES = {
    "streams.toml": """\
[streams."urn:doors"]
source = { kind = "folder", path = "doors", watch = true }
format = "timed-lines"
[streams."http://example.org/speed"]
source = { kind = "folder", path = "speed", watch = true }
format = "timed-lines"
""",
    "doors.stream": DOORS,
    "doors/1.stream": DOORS,
    "doors.rq": """\
SELECT ?who (COUNT(*) AS ?doors)
FROM NAMED WINDOW <urn:minute> ON <urn:doors> [RANGE PT1M STEP PT1M]
WHERE { WINDOW <urn:minute> { ?door <urn:openedBy> ?who } }
GROUP BY ?who
""",
    "doors.ttl": "<urn:door:1> <urn:leadsTo> <urn:hall> .\n",
    "people.ttl": "<http://example.org/ann> <http://example.org/knows> <http://example.org/bob> .\n",
    "schema.ttl": "<urn:openedBy> <http://www.w3.org/2000/01/rdf-schema#range> <urn:Person> .\n",
    "speed/1.stream": '1000 <urn:a> <urn:speed> "1" .\n',
    "data/a.ttl": "<urn:a> <urn:p> <urn:b> .\n",
    "data.ttl": "<urn:a> <urn:p> <urn:b> .\n",
    "flow.stream": "".join(f'{n} <urn:a> <urn:flow> "{n}" .\n' for n in range(20)),
    "flow.jsonl": '{"flow": 1}\n{"flow": 2}\n',
    "posts.stream": "1000 <http://example.org/bob> <http://example.org/posted> <urn:post:1> .\n",
    "mapping.ttl": """\
@prefix rml: <http://w3id.org/rml/> .
<#m> rml:logicalSource [ rml:source "readings.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:sensor:{sensor}" ] ;
  rml:predicateObjectMap [ rml:predicate <urn:speed> ; rml:objectMap [ rml:reference "speed" ] ] .
""",
    "readings.csv": "sensor,speed,measured_at\n1,30,2026-03-03T08:00:00Z\n",
    "jams.rq": "SELECT ?sensor { STREAM <urn:speed> [RANGE 1m] { ?sensor <urn:speed> ?speed } }\n",
    "out/demo/recording/speed.jsonl": '{"speed": 1}\n',
    "out/demo/rdf/speed/00000001-a.stream": "1000 <urn:a> <urn:p> <urn:b> <urn:g> .\n",
}
FILES["readings.ttl"] = FILES["mapping.ttl"]
# A live query has no end: a page waits for it, a test for its first seconds.
SHORTER = {
    "awaitTermination(60)": "awaitTermination(2)",
}
# Java stays in the folder in which the tests began, so paths that Spark reads have to be absolute.
READ_BY_SPARK = re.compile(r'(\.(?:csv|parquet|load)\(")(?=[^/])')
# Words of commands that this test cannot run; `test_docs` still checks their options.
NOT_HERE = {
    "bench": "takes minutes",
    "doctor": "checks the machine, not the page",
    "--live": "has no end",
    "quadweir run": "has no end",
    "quadweir serve": "has no end",
    "demo --page": "has no end",
    "quadweir checkpoint": "needs the checkpoint of a query that was stopped",
    "--realtime": "has no end and needs a broker",
    "--loop": "has no end",
    "tcp:": "waits for a client",
    "kafka:": "needs a broker",
    "--speed 10": "plays for as long as its recording",
    "network/": "needs what a benchmark generates",
}


def runnable(page: Path) -> list[list[str]]:
    """The words of each command of Quadweir's on a page that this test can run."""
    found = []
    for line in commands(page):
        words = shlex.split(line, comments=True)
        is_here = not any(word in line for word in NOT_HERE)
        if is_here and words[0].removeprefix(".venv/bin/") == "quadweir":
            found.append(words[1:])
    return found


# Those of the service need one; `test_service` runs them.
PYTHON = [page for page in PAGES if blocks(page, "python") and page.name != "service.md"]
CONSOLE = [page for page in PAGES if runnable(page)]


@pytest.fixture
def folder(spark, tmp_path, monkeypatch) -> Path:
    """A working folder with the files that pages name; Quadweir uses the one session."""
    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    monkeypatch.setattr(policies, "_REGISTERED", dict(policies._REGISTERED))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own_functions():
    """Functions that a page registers are gone after it."""
    yield
    for name in ("knots", "lane"):
        REGISTERED.remove(f"http://example.org/{name}")


@pytest.mark.parametrize("page", PYTHON, ids=name_of)
def test_python_on_pages_runs(page: Path, folder: Path, spark, own_functions, monkeypatch) -> None:
    """Later blocks of a page may use the names of earlier ones."""
    # A dataclass looks its module up.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    text = "\n".join(blocks(page, "python"))
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    text = READ_BY_SPARK.sub(rf"\1{folder}/", text)
    try:
        exec(compile(text, name_of(page), "exec"), vars(module))
    finally:
        for query in spark.streams.active:
            query.stop()


@pytest.mark.parametrize("page", CONSOLE, ids=name_of)
def test_commands_on_pages_run(page: Path, folder: Path) -> None:
    # The query that the page shows before its commands.
    friends = [block for block in blocks(page, "sparql") if "?friend" in block]
    (folder / "friends.rq").write_text("".join(friends[:1]), encoding="utf-8")
    for words in runnable(page):
        main(words)
