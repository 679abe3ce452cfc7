"""The queries on the page about query languages are read, in the language that they say."""

import re
from pathlib import Path

import pytest

from quadweir.syntax import detect, parse
from quadweir.syntax.write import TARGETS, write

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "query-languages.md"
QUERIES = re.findall(r"^```sparql\n# ([^\n]+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
DIALECTS = {
    "RSP-QL": "rspql",
    "C-SPARQL": "csparql",
    "CQELS-QL": "cqels",
    "SPARQLStream": "sparqlstream",
}
# There, a query cannot have patterns over static data next to windows.
CANNOT = {("RSP-QL", "sparqlstream"), ("CQELS-QL", "sparqlstream")}


@pytest.mark.parametrize(("title", "text"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_query_on_the_page_is_what_it_says(title, text):
    assert detect(text) == DIALECTS[title]
    query = parse(text)
    for target in TARGETS:
        if (title, target) in CANNOT:
            continue
        parse(write(query, target).text, dialect=target)


def test_all_of_them_are_there():
    assert {title for title, _ in QUERIES} == set(DIALECTS)
