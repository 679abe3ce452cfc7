"""Every query of the W3C suite that we read is written and read back as the same tree."""

from pathlib import Path

from quadweir.errors import QuadweirError
from quadweir.syntax.read import parse
from quadweir.syntax.write import declared_prefixes, write
from same_names import same_names

ALLOW = ("FROM", "SERVICE")
BASE = "http://example.org/"


def test_w3c_queries_are_written_back(suites: Path) -> None:
    checked, different = 0, []
    for file in sorted((suites / "sparql11").rglob("*.rq")):
        text = file.read_text(encoding="utf-8")
        try:
            query = parse(text, dialect="sparql", base=BASE, allow=ALLOW)
        except QuadweirError:
            continue  # a test of a query that must be rejected
        written = write(query, "rspql", prefixes=declared_prefixes(text))
        again = parse(written.text, dialect="rspql", allow=ALLOW)
        checked += 1
        if same_names(again) != same_names(query):
            different.append(file.name)
    assert different == []
    assert checked > 200
