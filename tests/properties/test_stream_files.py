"""Timed lines cut into any parts give the elements that the plain reader gives."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from quadweir.errors import DataError
from quadweir.sources.lines import Line, read_lines
from quadweir.sources.plainlines import PLAIN, look_at
from quadweir.sources.plaintimes import NO_TIME, instant, milliseconds
from quadweir.sources.statements import is_blank, parse_statement
from quadweir.sources.streamfiles import (
    DeadLetter,
    Element,
    ElementReader,
    StreamForm,
    read_elements,
    write_elements,
)
from quadweir.sources.timedlines import FilePart, count_lines, read_part, read_texts
from quadweir.terms import IRI, BlankNode, Literal, Quad
from quadweir.times import parse_time

times = st.sampled_from(
    ["1000", "1970-01-01T00:00:01Z", "2000", "-5", "-0", "01000", "soon", "9" * 15, "9" * 16]
)
STATEMENTS = [
    "<urn:a> <urn:p> <urn:g> .",
    "<urn:a> <urn:p> <urn:o> <urn:g> .",
    "<urn:a> <urn:p> <urn:o2> <urn:g> . # why",
    "<urn:a> <urn:p> <urn:o3> <urn:\\u0067> .",
    "<urn:a><urn:p>_:o.x _:g.",
    "_:a <urn:p> _:o.x _:g .",
    "_:a. <urn:p> _:o. _:g .",
    '<urn:a> <urn:p> "a\\q" <urn:g> .',
    '<urn:a> <urn:p> "\\"\\\\\\n" <urn:g> .',
    '<urn:a> <urn:p> "x . y"@en .',
    '<urn:a> <urn:p> "x"@en-gb-1 <urn:g> .',
    '<urn:a> <urn:p> "x"@EN <urn:g> .',
    '<urn:a> <urn:p> "é\U0001f600" <urn:g> .',
    '<urn:é> <urn:p> "é\ufffe" <urn:é> .',
    '<urn:a> <urn:p> "1"^^<urn:d> .',
    '<urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#string> <urn:g> .',
    '<urn:a> <urn:p> "1"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    "<urn:a> <urn:p> <<( <urn:s> <urn:p> <urn:o> )>> <urn:g> .",
    "<a> <urn:p> <urn:o> .",
    "<urn:a> <urn:p> .",
    "# not here",
    "",
]
PIECES = [
    *' \t<>"\\._:@^#-aZ09é·\r\x0b\x00\x7f\x85\u2028\ufffe{}|`',
    *("\\u0041", "\\u", "_:", "^^", "@en", "<urn:x>", " .", "http://", '"x"', "😀"),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A statement with pieces put in, taken out or replaced: near misses of every kind."""
    found = list(draw(st.sampled_from(STATEMENTS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(found)))
        put = draw(st.one_of(st.just([]), st.sampled_from(PIECES).map(lambda piece: [piece])))
        found[at : at + draw(st.integers(0, 1))] = put
    return "".join(found)


statements = st.one_of(st.sampled_from(STATEMENTS), mutated())
timed = st.builds(
    lambda t, gap, s: f"{t}{gap}{s}".encode(), times, st.sampled_from([" ", "\t", "  "]), statements
)
lines = st.one_of(
    timed,
    timed,
    st.sampled_from([b"", b"  ", b"# c", b"\xff", b"1 \xff", b"x" * 80, b"1000", b"1000 ", b"\r"]),
)
files = st.builds(
    lambda mark, items, end, last: mark + end.join(items) + (end if last else b""),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.lists(lines, max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
# Also the size of the blocks, so that elements go on from one block to the next.
most_bytes = st.sampled_from([60, 100, 4096])
# Longer than a byte order mark: the first line begins after it, in the first part.
part_sizes = st.integers(4, 200)


TOO_LONG = "a line of more than"


def parts_of(path: Path, part_bytes: int) -> list[FilePart]:
    starts = list(range(0, max(1, path.stat().st_size), part_bytes))
    ends = [*starts[1:], None]
    numbers = count_lines(path, starts)
    return [
        FilePart(str(path), 3, start, end, number)
        for start, end, number in zip(starts, ends, numbers, strict=True)
    ]


def quad_of(row: dict[str, Any]) -> Quad:
    """The statement of a row; a plain one must be what the parser gives, spelled as it would be."""
    if row["reason"] is not None:
        raise DataError(row["reason"])
    if row["value"] is not None:
        return parse_statement(row["value"])
    terms = [row[f"plain_{name}"] for name in ("subject", "predicate", "object", "graph")]
    quad = parse_statement(statement_of(row))
    spelled = [quad.subject, quad.predicate, quad.object, quad.graph]
    assert terms == [None if term is None else str(term) for term in spelled]
    return quad


def statement_of(row: dict[str, Any]) -> str:
    if row["value"] is not None:
        return str(row["value"])
    terms = [row[f"plain_{name}"] for name in ("subject", "predicate", "object", "graph")]
    return " ".join([*(term for term in terms if term is not None), "."])


def in_parts(
    parts: list[FilePart], max_line_bytes: int
) -> tuple[list[Element], dict[int, tuple[str | None, str]]]:
    """The elements of parts, and the lines that cannot be used with their reasons and texts."""
    quads: dict[tuple[int, int], list[Quad]] = defaultdict(list)
    bad = {}
    for part in parts:
        for batch in read_part(part, max_line_bytes=max_line_bytes):
            for row in batch.to_pylist():
                try:
                    quads[row["event_time"], row["run"]].append(quad_of(row))
                except DataError:
                    bad[row["line"]] = row["reason"], f"{row['lead'] or ''}{row['value']}"
    found = [Element("urn:s", *key, tuple(group)) for key, group in quads.items() if group]
    return sorted(found, key=lambda e: e.position), bad


@given(files, part_sizes, most_bytes)
@example(b"\xef\xbb\xbf1000 <urn:a> <urn:p> <urn:o> .\n", 5, 60)
@example(b"1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n" * 400, 9000, 60)
@example(
    b"1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n"
    + b"x" * 9000
    + b"\n1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n",
    4000,
    60,
)
def test_parts_do_not_matter(data: bytes, part_bytes: int, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.stream"
        path.write_bytes(data)
        letters: list[DeadLetter] = []
        reader = ElementReader(StreamForm.TIMED_LINES, "urn:s", 0, None, None, letters.append, most)
        expected = list(reader.read(path, 3))
        found, bad = in_parts(parts_of(path, part_bytes), most)
        path.write_bytes(gzip.compress(data))
        unpacked = in_parts([FilePart(str(path), 3)], most)
    assert found == expected
    assert {f"line {number}" for number in bad} == {letter.place for letter in letters}
    # How much of a line that is too long is shown depends on where it was cut.
    texts = {
        letter.place: (letter.record or "").rstrip("\r\n")
        for letter in letters
        if TOO_LONG not in letter.reason
    }
    assert {
        f"line {number}": text
        for number, (reason, text) in bad.items()
        if TOO_LONG not in (reason or "")
    } == texts
    assert unpacked[0] == found
    assert unpacked[1].keys() == bad.keys()


@given(files, part_sizes, most_bytes)
def test_lines_are_given_back_as_they_are_written(data: bytes, part_bytes: int, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.stream"
        path.write_bytes(data)
        expected = {
            line.number: line.text
            for line in read_lines(path, max_line_bytes=most)
            if isinstance(line, Line) and not is_blank(line.text)
        }
        parts = parts_of(path, part_bytes)
        texts: dict[int, str] = {}
        rebuilt: dict[int, str] = {}
        for part in parts:
            for batch in read_texts(part, max_line_bytes=most):
                found = batch.to_pylist()
                texts |= {row["line"]: row["value"] for row in found if row["line"] in expected}
            for batch in read_part(part, max_line_bytes=most):
                for row in (row for row in batch.to_pylist() if row["line"] in expected):
                    lead = row["lead"] if row["lead"] is not None else f"{row['event_time']} "
                    rebuilt[row["line"]] = lead + statement_of(row)
    assert texts == expected
    assert rebuilt == expected


@given(statements)
def test_a_canonical_statement_is_plain(text: str) -> None:
    """Else nothing would be wrong, and all be slow."""
    try:
        quad = parse_statement(text)
    except DataError:
        return
    if "<<" not in text:
        (line,) = look_at(f"1000 {quad}\n".encode())[1]
        has_odd_label = any(
            isinstance(term, BlankNode) and not term.label.isascii()
            for term in (quad.subject, quad.object, quad.graph)
        )
        assert (line["kind"] == PLAIN) == (not has_odd_label)


digits = st.integers(0, 99).map("{:02}".format)
instants = st.builds(
    "{}-{}-{}T{}:{}:{}{}{}".format,
    st.sampled_from(["0000", "0001", "1969", "1970", "1999", "2000", "2024", "2100", "9999"]),
    st.one_of(st.integers(1, 12).map("{:02}".format), digits),
    st.one_of(st.integers(1, 31).map("{:02}".format), digits),
    st.one_of(st.integers(0, 24).map("{:02}".format), digits),
    st.one_of(st.integers(0, 60).map("{:02}".format), digits),
    st.one_of(st.integers(0, 60).map("{:02}".format), digits),
    st.sampled_from(["", ".", ".5", ".25", ".1239", ".000999999999", ".0000000000001"]),
    st.sampled_from(["", "Z", "+01:00", "-13:59", "+14:00", "-14:01", "+00:60", "+1:00", "z"]),
)
words = st.one_of(instants, times, st.text("-0123456789T:.Z+", max_size=20))


@given(words)
def test_compiled_times_are_the_parsed_ones(word: str) -> None:
    try:
        expected = parse_time(word)
    except DataError:
        expected = NO_TIME
    data = np.frombuffer(f"{word} ".encode(), dtype=np.uint8)
    found = milliseconds(data, 0, len(word)) if word else NO_TIME
    assert expected == (found if found != NO_TIME else instant(data, 0, len(word)))


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
subjects = st.sampled_from([IRI("urn:a"), IRI("http://example.org/é"), BlankNode("b.1")])
objects = st.one_of(
    subjects, st.builds(Literal, text), st.builds(lambda v: Literal(v, language="en"), text)
)
graphs = st.one_of(st.none(), subjects)


@st.composite
def elements(draw: st.DrawFn) -> Element:
    graph = draw(graphs)
    triples = draw(st.lists(st.tuples(subjects, objects), min_size=1, max_size=3 if graph else 1))
    quads = tuple(Quad(s, IRI("urn:p"), o, graph) for s, o in triples)
    return Element("urn:s", draw(st.sampled_from([0, 1, 1700000000123])), 0, quads)


@given(st.lists(elements(), max_size=8), st.booleans())
def test_written_elements_are_read_back(written: list[Element], iso: bool) -> None:
    out = io.StringIO()
    count = write_elements(written, out, iso=iso)
    assert count == sum(len(element.quads) for element in written)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.stream"
        path.write_text(out.getvalue(), encoding="utf-8", newline="")
        read = list(read_elements(path, stream="urn:s"))
    assert [(e.event_time, e.quads) for e in read] == [(e.event_time, e.quads) for e in written]
    assert [e.position for e in read] == sorted({e.position for e in read})
