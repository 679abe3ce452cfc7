"""Timed lines cut into any parts give the elements that the plain reader gives."""

from __future__ import annotations

import io
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from quadweir.errors import DataError
from quadweir.sources.statements import parse_statement
from quadweir.sources.streamfiles import (
    DeadLetter,
    Element,
    read_elements,
    write_elements,
)
from quadweir.sources.timedlines import Part, count_lines, read_part
from quadweir.terms import IRI, BlankNode, Literal, Quad

times = st.sampled_from(["1000", "1970-01-01T00:00:01Z", "2000", "-5", "soon"])
statements = st.sampled_from(
    [
        "<urn:a> <urn:p> <urn:g> .",
        "<urn:a> <urn:p> <urn:o> <urn:g> .",
        "<urn:a> <urn:p> <urn:o2> <urn:g> . # why",
        "<urn:a> <urn:p> <urn:o3> <urn:\\u0067> .",
        "<urn:a><urn:p>_:o.x _:g.",
        '<urn:a> <urn:p> "a\\q" <urn:g> .',
        '<urn:a> <urn:p> "x . y"@en .',
        "<urn:a> <urn:p> .",
        "# not here",
        "",
    ]
)
timed = st.builds(
    lambda t, gap, s: f"{t}{gap}{s}".encode(), times, st.sampled_from(" \t"), statements
)
lines = st.one_of(timed, timed, st.sampled_from([b"", b"  ", b"# c", b"\xff", b"x" * 80, b"1000"]))
files = st.builds(
    lambda items, end, last: end.join(items) + (end if last else b""),
    st.lists(lines, max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
MOST = 60


def in_parts(path: Path, part_bytes: int) -> tuple[list[Element], set[str]]:
    starts = list(range(0, max(1, path.stat().st_size), part_bytes))
    parts = [
        Part(str(path), 3, start, end, number)
        for start, end, number in zip(
            starts, [*starts[1:], None], count_lines(path, starts), strict=True
        )
    ]
    quads: dict[tuple[int, int], list[Quad]] = defaultdict(list)
    bad = set()
    for part in parts:
        for batch in read_part(part, max_line_bytes=MOST):
            for row in batch.to_pylist():
                try:
                    if row["reason"] is not None:
                        raise DataError(row["reason"])
                    quad = parse_statement(row["value"][row["cut"] :].rstrip("\r\n"))
                except DataError:
                    bad.add(f"line {row['line']}")
                else:
                    position = row["run"] if quad.graph is not None else row["position"]
                    quads[row["event_time"], position].append(quad)
    found = [Element("urn:s", *key, tuple(group)) for key, group in quads.items()]
    return sorted(found, key=lambda e: e.position), bad


@given(files, st.integers(1, 200))
@example(b"\xef\xbb\xbf1000 <urn:a> <urn:p> <urn:o> .\n", 5)
@example(b"1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n" * 400, 9000)
@example(
    b"1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n"
    + b"x" * 9000
    + b"\n1000 <urn:a> <urn:p> <urn:o> <urn:g> .\n",
    4000,
)
def test_parts_do_not_matter(data: bytes, part_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.stream"
        path.write_bytes(data)
        letters: list[DeadLetter] = []
        from quadweir.sources.streamfiles import ElementReader, Form

        reader = ElementReader(Form.TIMED_LINES, "urn:s", 0, None, None, letters.append, MOST)
        expected = list(reader.read(path, 3))
        found, bad = in_parts(path, part_bytes)
    assert found == expected
    assert bad == {letter.place for letter in letters}


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
