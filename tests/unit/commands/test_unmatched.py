"""Which patterns the oracle says match nothing."""

from __future__ import annotations

import pytest

from quadweir.commands.unmatched import Unmatched
from quadweir.syntax import parse
from streaming import quads, stream

P = "PREFIX : <urn:>"
CQELS = f"{P} SELECT * {{ STREAM :s [RANGE 1s] {{ %s }} %s }}"
CSPARQL = f"{P} SELECT * FROM STREAM :s [RANGE 1s STEP 1s] FROM <urn:g> WHERE {{ %s }}"


def said(text: str) -> list[str]:
    found = Unmatched(parse(text), quads("a static b"))
    list(found.watching([*stream((1, "a p 1"), (2, "b q 2")), *stream((1, "a other b"), name="t")]))
    return [each.partition(" (line")[0] for each in found.said()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CQELS % ("?a :p ?b . ?b ?p 2", "?a :static ?c"), []),
        (CQELS % ("?a :p :b", ""), ["no statement of <urn:s> matches ?a <urn:p> <urn:b>"]),
        (CQELS % ("?a :static ?b", ""), ["no statement of <urn:s> matches ?a <urn:static> ?b"]),
        (CQELS % ("?a :other ?b", ""), ["no statement of <urn:s> matches ?a <urn:other> ?b"]),
        (CQELS % ("?a :p ?b", "?a :q ?b"), ["no static data matches ?a <urn:q> ?b"]),
        (CQELS.replace(":s", "?s") % ("?a :other ?b", ""), []),
        (CSPARQL % "?a :static ?b . ?a :p ?c . _:x :q ?d", []),
        (CSPARQL % "?a :none ?b", ["no statement matches ?a <urn:none> ?b"]),
        (
            CQELS % ("?a :p ?b", "FILTER NOT EXISTS { ?a :typo ?b }"),
            ["no static data matches ?a <urn:typo> ?b"],
        ),
    ],
)
def test_patterns_that_nothing_matches(text: str, expected: list[str]) -> None:
    assert said(text) == expected
