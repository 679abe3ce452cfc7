"""Bodies of pushes: each form gives the same elements, and mistakes have their places."""

from __future__ import annotations

import pytest

from quadweir.errors import DataError
from quadweir.service.problems import MediaTypeError
from quadweir.service.pushing import TIMED_LINES, PushBody, read_push
from quadweir.service.rdfbody import check_depth

A = '<urn:a> <urn:p> "1" .'
B = '<urn:b> <urn:p> "2" <urn:g> .'
C = '<urn:c> <urn:p> "3" <urn:g> .'


def rdf(body: str, media_type: str) -> PushBody:
    return read_push(body.encode(), media_type, "nquads", is_rdf=True, time_ms=7)


def records(body: str, media_type: str, form: str = "jsonl") -> list[str]:
    return read_push(body.encode(), media_type, form, is_rdf=False, time_ms=7).values


def test_each_graph_of_a_document_is_an_element() -> None:
    found = rdf(f"{A}\n{B}\n{C}\n", "application/n-quads")
    assert found.values == [A, f"{B}\n{C}"]
    assert (found.times, found.statements) == ([7, 7], 3)
    trig = '<urn:a> <urn:p> "1" . <urn:g> { <urn:b> <urn:p> "2" . <urn:c> <urn:p> "3" }'
    assert rdf(trig, "application/trig").values == found.values


def test_json_ld_and_turtle() -> None:
    assert rdf('<urn:a> <urn:p> "1" .', "text/turtle").values == [A]
    assert rdf('{"@id":"urn:a","urn:p":"1"}', "application/ld+json").values == [A]


def test_blank_nodes_of_two_documents_differ() -> None:
    one, other = (rdf("_:b <urn:p> <urn:o> .", "application/n-triples").values for _ in "ab")
    assert one != other


def test_timed_lines_are_elements_as_in_files() -> None:
    text = f"1 {A}\n1 {A}\n2 {B}\n2 {C}\n# apart\n2 {B}\n3 {B}\n"
    found = rdf(text, TIMED_LINES)
    assert found.values == [A, A, f"{B}\n{C}", B, B]
    assert (found.times, found.statements) == ([1, 1, 2, 2, 3], 6)


@pytest.mark.parametrize(
    ("body", "media_type", "line"),
    [
        ('<urn:a> <urn:p> "1" .\n<urn:a> <urn:p> oops .', "application/n-triples", 2),
        (f"1 {A}\n\n2 <urn:a> <urn:p> oops .", TIMED_LINES, 3),
        (f"1 {A}\nsoon {A}", TIMED_LINES, 2),
        ("<urn:a> <urn:p>\n  ;;; ] .", "text/turtle", 2),
    ],
)
def test_a_mistake_in_rdf_has_its_line(body: str, media_type: str, line: int) -> None:
    with pytest.raises(DataError) as caught:
        rdf(body, media_type)
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_two_statements_on_a_timed_line_are_refused() -> None:
    with pytest.raises(DataError):
        rdf(f"1 {A} {A}", TIMED_LINES)


def test_records() -> None:
    assert records('[{"a": 1}, {"a": 2}]', "application/json") == ['{"a": 1}', '{"a": 2}']
    assert records('{"a":1}\n\n{"a":2}\n', "application/x-ndjson") == ['{"a":1}', '{"a":2}']
    assert records("<a/>", "application/xml", "xml") == ["<a/>"]
    with pytest.raises(DataError) as caught:
        records('{"a":1}\n{"a":', "application/x-ndjson")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_a_stream_takes_its_own_content_types() -> None:
    for wrong in ("", "text/html", "application/json"):
        with pytest.raises(MediaTypeError):
            rdf(A, wrong)
    with pytest.raises(MediaTypeError):
        records(A, "application/n-quads")
    with pytest.raises(MediaTypeError):
        records("a,b", "text/csv", "csv")


def test_bytes_that_are_no_text_are_an_error() -> None:
    with pytest.raises(DataError):
        read_push(b"1 \xff", TIMED_LINES, "nquads", is_rdf=True, time_ms=7)
    with pytest.raises(DataError):
        read_push(b"\xff", "application/json", "jsonl", is_rdf=False, time_ms=7)


@pytest.mark.parametrize("opening", [b"[", b"(", b'{"a":', b"<urn:a> <urn:p> ["])
def test_deep_nesting_is_refused(opening: bytes) -> None:
    with pytest.raises(DataError):
        check_depth(opening * 200)


def test_brackets_in_texts_and_iris_do_not_nest() -> None:
    check_depth(b'"[[[" ' * 200 + b"<urn:(((> " * 200)
    check_depth(b'"' + b'\\"[' * 100_000)
