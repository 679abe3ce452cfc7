"""Detection of dialects and places in the original text."""

from __future__ import annotations

import pytest

from quadweir.spans import Span
from quadweir.syntax import detect
from quadweir.syntax.iris import resolve
from quadweir.syntax.parser import expected_words
from quadweir.syntax.scan import SourceText


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT * { ?a ?b ?c }", "sparql"),
        ("", "sparql"),
        (
            "# FROM STREAM\nSELECT * { ?a <http://x/STREAM> 'FROM STREAM', ?stream, stream:x }",
            "sparql",
        ),
        ("SELECT * { ?a :STREAM [ :window 1 ] }", "sparql"),
        ("SELECT * from named window :w on :s [NOW] {}", "rspql"),
        ("SELECT * { WINDOW ?w {} }", "rspql"),
        ("REGISTER RStream <q> AS SELECT * {}", "rspql"),
        ("REGISTER STREAM <q> AS SELECT * {}", "rspql"),
        ("REGISTER QUERY q AS SELECT * {}", "csparql"),
        ("REGISTER QUERY :q COMPUTED EVERY 5s AS SELECT * {}", "csparql"),
        ("SELECT * FROM NAMED STREAM :s [RANGE 5s STEP 1s] {}", "csparql"),
        ("SELECT * { FILTER(timestamp(?a)) }", "csparql"),
        ("SELECT * { stream :s [NOW] {} }", "cqels"),
        ("SELECT * { STREAM ?s # where?\n [NOW] {} }", "cqels"),
        ("SELECT * FROM STREAM s [NOW] { STREAM s {} }", "cqels2"),
        ("SELECT * FROM STREAM s [RANGE 10s] { ?a ?b ?c }", "cqels2"),
        ("SELECT * FROM STREAM <s> [SLIDE 10s STEP 1s] { ?a ?b ?c }", "cqels2"),
        ("SELECT * FROM STREAM <s> [NOW] { ?a ?b ?c }", "cqels2"),
        ("SELECT * FROM STREAM <s> [RANGE 10s] { ?a ?b ?c }", "csparql"),
        ("SELECT * FROM STREAM <s> [FROM", "csparql"),
        ("SELECT * FROM NAMED STREAM <s> [NOW - 10 S SLIDE 10 S] {}", "sparqlstream"),
        ("SELECT * FROM STREAM <s> [now-10 S] {}", "sparqlstream"),
        ("SELECT * FROM NAMED STREAM <s> [FROM NOW -10s TO NOW -5s] {}", "sparqlstream"),
        ("SELECT * FROM NAMED STREAM <s> [NOW SLIDE 1 S] {}", "sparqlstream"),
        ("SELECT * FROM NAMED STREAM <s> [NOW] {}", "sparqlstream"),
        ("SELECT ISTREAM * FROM STREAM <s> [RANGE 1s] {}", "sparqlstream"),
        ("REGISTER ISTREAM <q> AS SELECT * FROM STREAM <s> [RANGE 1s] {}", "rspql"),
    ],
)
def test_detect(text: str, dialect: str) -> None:
    assert detect(text) == dialect


def test_places() -> None:
    source = SourceText("a\\u0041b\nc\\U0001F600d", "q.rq")
    assert source.text == "aAb\nc\U0001f600d"
    assert source.span(0, 1) == Span(1, 1, 1, 2, "q.rq")
    assert source.span(1, 2) == Span(1, 2, 1, 8, "q.rq")
    assert source.span(2, 3) == Span(1, 8, 1, 9, "q.rq")
    assert source.span(6, 7) == Span(2, 12, 2, 13, "q.rq")


def test_expected_words() -> None:
    assert expected_words({"LBRACE"}) == "'{'"
    assert expected_words({"STAR", "OPERATOR", "RPAR"}) == "an operator or ')'"
    many = {f"WORD{n}" for n in range(12)}
    assert expected_words(many).endswith("or 5 other things")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        # The examples of RFC 3986, section 5.4.
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
    ],
)
def test_resolve(reference: str, expected: str) -> None:
    assert resolve(reference, "http://a/b/c/d;p?q") == expected
