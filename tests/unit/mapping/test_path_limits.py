"""Paths into records: patterns take linear time, and work has a limit."""

from __future__ import annotations

from typing import Any

import pytest

from quadweir.errors import LimitError, MappingError
from quadweir.mapping import jsonpathlimits
from quadweir.mapping.formats import xpaths
from quadweir.mapping.formats.jsonfile import evaluate
from quadweir.mapping.formats.xmlfile import XmlPlan, check_plan, read_elements
from quadweir.mapping.jsonpath import select

HARD = "(a+)+$"
TEXT = "a" * 60 + "!"


def nested(depth: int, width: int) -> Any:
    found: Any = "leaf"
    for _ in range(depth):
        found = {"a": found, **{f"b{at}": at for at in range(width)}}
    return found


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "path",
    [
        f"$[?match(@.t, '{HARD}')]",
        f"$[?search(@.t, '{HARD}')]",
        f"$[?@.t =~ /{HARD}/]",
        "$[?search(@.t, @.p)]",
    ],
)
def test_a_pattern_that_backtracks_is_matched_in_linear_time(path: str):
    assert select([{"t": TEXT, "p": HARD}], path) == []
    # The pattern of the last path comes from the record.
    assert select([{"t": "aaa", "p": HARD}], path) == [{"t": "aaa", "p": HARD}]


def test_patterns_match_as_before():
    records = [{"t": "Kiel"}, {"t": "Köln"}]
    assert select(records, "$[?match(@.t, 'K.*n')].t") == ["Köln"]
    assert select(records, "$[?search(@.t, '[ö]')].t") == ["Köln"]
    assert select(records, "$[?@.t =~ /kiel/i].t") == ["Kiel"]
    assert select(records, "$[?search(@.t, '(((')].t") == []
    with pytest.raises(MappingError, match="is not a JSONPath"):
        select(records, "$[?@.t =~ /(((/].t")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "path",
    [
        "$..*..*..*..*",
        "$..a..a..a..a..a",
        "$..[?count(@..[?count(@..[?count(@..*) > 1]) > 1]) > 1]",
        "$..[?count($..[?count($..*) > 1]) > 1]",
        "$..x | $..*..*..*..*",
    ],
)
def test_a_path_that_looks_at_too_much_is_stopped_by_name(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jsonpathlimits, "MOST_NODES", 20_000)
    with pytest.raises(LimitError, match="JSONPath") as caught:
        select(nested(60, 10), path)
    assert path in caught.value.message


def test_a_large_document_is_gone_through_some_times(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jsonpathlimits, "MOST_NODES", 100)
    wide = [{"a": [{"b": 1}] * 10}] * 300
    assert len(select(wide, "$..a..b")) == 3_000


def test_a_record_that_a_path_looks_at_too_long_is_a_bad_record(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jsonpathlimits, "MOST_NODES", 20_000)
    row = evaluate("record 1", nested(60, 10), ["$..*..*..*..*"], 0)
    assert row.values is None
    assert row.reason.startswith("QW-LIMIT: the JSONPath $..*..*..*..* looks at more than")


EXSLT = (("re", "http://exslt.org/regular-expressions"),)


def values(text: str, iterator: str, *references: str) -> list[Any]:
    rows = list(read_elements(text, XmlPlan(iterator, references, EXSLT), "UTF-8"))
    return [row.values if row.values is not None else row.reason for row in rows]


@pytest.mark.timeout(60)
def test_xpath_matches_patterns_in_linear_time():
    document = f"<r><a>{TEXT}</a><a>aaa</a></r>"
    assert values(document, f"//a[re:test(., '{HARD}')]", ".") == [(["aaa"],)]
    assert values(document, "/r/a", f"re:replace(., '{HARD}', '', 'b')") == [([TEXT],), (["b"],)]
    assert values(document, "/r/a", f"re:match(., '{HARD}')") == [([],), (["aaa", "aaa"],)]
    assert values("<r><a>B1b2</a></r>", "/r/a", "re:match(., 'b.', 'gi')") == [(["B1", "b2"],)]


def test_an_invalid_pattern_is_an_error_of_the_mapping_or_a_bad_record():
    with pytest.raises(MappingError, match="is not an XPath"):
        check_plan(XmlPlan("/r", ("re:test(., '(((')",), EXSLT))
    (reason,) = values("<r p='((('/>", "/r", "re:test('a', @p)")
    assert "is not a regular expression" in reason


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "path",
    ["//*//*", "//*[.//*]", "//a//a//a", "/r/descendant::*/ancestor::*", "//node()//text()"],
)
def test_an_xpath_with_too_many_combinations_is_a_bad_record(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(xpaths, "MOST_COMBINATIONS", 1000)
    document = f"<r>{'<a>' * 100}{'</a>' * 100}</r>"
    (reason,) = values(document, path, ".")
    assert reason.startswith(f"QW-LIMIT: the XPath {path} may try")
    assert values("<r><a><b>1</b></a></r>", "//a//b", ".") == [(["1"],)]


@pytest.mark.parametrize(
    "path",
    [
        "//a//a//none",
        "//a[//none]",
        "//a[. = 1 and //none]",
        "//a/following-sibling::none",
        "//a[count( preceding::none) = 1]",
    ],
)
def test_combinations_that_find_nothing_in_the_end_are_counted_too(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(xpaths, "MOST_COMBINATIONS", 1000)
    document = f"<r>{'<a>' * 100}{'</a>' * 100}</r>"
    (reason,) = values(document, path, ".")
    assert reason.startswith(f"QW-LIMIT: the XPath {path} may try")
    assert values(document, "//none//a//a", ".") == []


def test_names_that_are_rare_are_looked_for_in_large_documents(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xpaths, "MOST_COMBINATIONS", 1000)
    document = f"<r><a><b>1</b></a>{'<c>//*//*</c>' * 5000}</r>"
    assert values(document, "//a//b", ".") == [(["1"],)]
    assert len(values(document, "//c[. = '//*//*']", ".")) == 5000
