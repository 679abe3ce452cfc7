"""The three forms of stream file, as the reference page describes them."""

from __future__ import annotations

import gzip
import io
from datetime import timedelta
from pathlib import Path

import pytest

from quadweir.errors import DataError, LimitError, SourceError, UsageError
from quadweir.sources import streamfiles
from quadweir.sources.statements import parse_statement
from quadweir.sources.streamfiles import (
    DeadLetter,
    Element,
    StreamForm,
    read_elements,
    validate,
    write_elements,
)
from quadweir.terms import IRI, BlankNode, Literal, Quad, TripleTerm

PROV = "@prefix prov: <http://www.w3.org/ns/prov#> . @prefix : <urn:x:> .\n"


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def summary(
    path: Path, **options: object
) -> tuple[list[tuple[int, int, int]], list[tuple[str, str]]]:
    letters: list[DeadLetter] = []
    elements = list(read_elements(path, on_bad=letters.append, **options))  # type: ignore[arg-type]
    return (
        [(e.event_time, e.position, len(e.quads)) for e in elements],
        [(letter.place, letter.reason) for letter in letters],
    )


class TestTimedLines:
    def test_lines_of_one_graph_and_time_are_one_element(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "a.stream",
            "1000 <urn:a> <urn:p> <urn:b> .\n"
            "1000 <urn:a> <urn:p> <urn:b> .\n"
            "1000 <urn:a> <urn:p> <urn:b> <urn:g> .\n"
            "1970-01-01T00:00:01.000Z\t<urn:a> <urn:p> <urn:c> <urn:g> .\n"
            "1000 <urn:a> <urn:p> <urn:b> <urn:h> .\n"
            "1001 <urn:a> <urn:p> <urn:b> <urn:h> .\n"
            "# between\n"
            "1001 <urn:a> <urn:p> <urn:c> <urn:h> .\n",
        )
        good, bad = summary(path)
        assert good == [
            (1000, 1, 1),
            (1000, 2, 1),
            (1000, 3, 2),
            (1000, 5, 1),
            (1001, 6, 1),
            (1001, 8, 1),
        ]
        assert not bad

    @pytest.mark.parametrize(
        "line",
        [
            "<urn:a> <urn:p> <urn:b> .",
            "1000<urn:a> <urn:p> <urn:b> .",
            " 1000 <urn:a> <urn:p> <urn:b> .",
            "1000 <urn:a> <urn:p> <urn:b>",
            "1000 <urn:a> <urn:p> <urn:b> . <urn:a>",
            "1000 <a> <urn:p> <urn:b> .",
            '1000 "a" <urn:p> <urn:b> .',
            "1000 <urn:a> _:p <urn:b> .",
            '1000 <urn:a> <urn:p> "b" "g" .',
            '1000 <urn:a> <urn:p> "\\q" .',
            '1000 <urn:a> <urn:p> "\\uD800" .',
            '1000 <urn:a> <urn:p> "b"@1-a .',
            '1000 <urn:a> <urn:p> "b"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
            "1000 # nothing",
            "1000 ",
            "2024-02-30T00:00:00Z <urn:a> <urn:p> <urn:b> .",
        ],
    )  # fmt: skip
    def test_what_is_no_timed_line(self, tmp_path: Path, line: str) -> None:
        path = write(tmp_path, "a.stream", f"{line}\n5 <urn:a> <urn:p> <urn:b> .\n")
        good, bad = summary(path)
        assert good == [(5, 2, 1)]
        assert [place for place, _ in bad] == ["line 1"]
        with pytest.raises(DataError) as caught:
            list(read_elements(path))
        assert caught.value.span is not None
        assert (caught.value.span.line, caught.value.span.source) == (1, str(path))

    def test_a_wrong_line_inside_a_graph_does_not_break_it(self, tmp_path: Path) -> None:
        quad = '1 <urn:a> <urn:p> "{}" <urn:g> .\n'
        path = write(tmp_path, "a.stream", quad.format("x") + quad.format("\\q") + quad.format("y"))
        assert summary(path)[0] == [(1, 1, 2)]

    def test_files_of_a_folder_are_numbered_by_name(self, tmp_path: Path) -> None:
        for name in ("b.stream", "a.stream", "_c.stream", ".d.stream"):
            write(tmp_path, name, "1 <urn:a> <urn:p> <urn:b> .\n")
        (tmp_path / "e.stream").write_bytes(gzip.compress(b"2 <urn:a> <urn:p> <urn:b> .\n"))
        assert [position for _, position, _ in summary(tmp_path)[0]] == [
            1,
            (1 << 40) + 1,
            (2 << 40) + 1,
        ]
        assert len(summary(tmp_path, pattern="b*")[0]) == 1

    def test_a_hostile_line_takes_linear_time(self) -> None:
        for text in (
            "_:" * 50_000,
            "<urn:a> <urn:p> " + " " * 100_000,
            "<urn:a> <urn:p> _:b" + "." * 100_000,
        ):
            with pytest.raises(DataError):
                parse_statement(text)


class TestTimedGraphs:
    def test_times_may_stand_before_or_after(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "a.trig",
            PROV + ":g1 { :a :b 1, 2 } :g2 prov:generatedAtTime 7000 . :g2 { :a :b 1 }"
            ' :g1 prov:generatedAtTime "1970-01-01T00:00:02Z" .',
        )
        assert summary(path) == ([(2000, 1, 2), (7000, 2, 1)], [])

    def test_what_cannot_be_an_element(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "a.trig",
            PROV + ":g1 prov:generatedAtTime 1, 2 . :g1 { :a :b 1 } :g2 { :a :b 1 } :a :b 1 ."
            ":g3 prov:generatedAtTime :soon . :g3 { :a :b 1 } :g1 { :a :b 2 }",
        )
        good, bad = summary(path)
        assert good == [(1, 1, 1)]
        assert [reason for _, reason in bad] == [
            "the graph <urn:x:g1> has two times",
            "a statement outside any graph",
            "not an event time: <urn:x:soon>",
            "the graph <urn:x:g1> is taken up again after another one",
            "the graph <urn:x:g2> has no usable time",
            "the graph <urn:x:g3> has no usable time",
        ]

    def test_nquads_and_a_predicate_inside(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "a.nq",
            '<urn:a> <urn:at> "5" <urn:g> .\nrubbish\n<urn:a> <urn:p> <urn:b> <urn:g> .\n',
        )
        assert summary(path, predicate="urn:at") == (
            [(5, 1, 2)],
            [("line 2", "the subject is not an IRI or a blank node")],
        )

    @pytest.mark.parametrize(
        ("name", "text", "reason"),
        [
            ("a.nq", "<urn:a> <urn:p> << <urn:b> <urn:q> 'c' >> <urn:g> .", "a quoted triple"),
            ("a.nq", "<< <urn:b> <urn:q> <urn:c> >> <urn:p> <urn:a> <urn:g> .", "a quoted triple"),
            ("a.trig", '<urn:g> { <urn:a> <urn:p> "x"@ar--rtl }', "a base direction"),
        ],
    )
    def test_what_rdf_12_added_is_a_dead_letter_that_names_it(
        self, tmp_path: Path, name: str, text: str, reason: str
    ) -> None:
        good, bad = summary(write(tmp_path, name, text + "\n"), predicate="urn:at")
        assert good == []
        assert bad[0][1].startswith(reason)
        assert "RDF 1.2" in bad[0][1]

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            (
                "a.nq",
                '<urn:a> <urn:p> <<( _:b <urn:q> "c" )>> <urn:g> .\n<urn:a> <urn:at> "5" <urn:g> .\n',
            ),
            (
                "a.trig",
                '<urn:g> { <urn:a> <urn:p> <<( _:b <urn:q> "c" )>> ; <urn:at> "5" }\n',
            ),
        ],
    )
    def test_elements_have_triple_terms(self, tmp_path: Path, name: str, text: str) -> None:
        path = write(tmp_path, name, text)
        (found,) = read_elements(path, predicate="urn:at")
        ends = [quad.object for quad in found.quads]
        assert TripleTerm(BlankNode("b"), IRI("urn:q"), Literal("c")) in ends

    def test_a_syntax_error_keeps_what_came_before(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, "a.trig", PROV + ":g prov:generatedAtTime 1 . :g { :a :b 1 }\n\n:h { oops"
        )
        good, bad = summary(path)
        assert good == [(1, 1, 1)]
        assert bad[0][0] == "line 4"

    def test_anonymous_nodes_have_the_same_name_every_time(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, "a.trig", PROV + ":g prov:generatedAtTime 1 . :g { :a :b [ :c _:d ], [] }"
        )
        first = list(read_elements(path))
        assert first == list(read_elements(path))
        assert len({str(q.object) for q in first[0].quads}) == 3

    def test_waiting_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streamfiles, "MAX_WAITING_QUADS", 3)
        path = write(tmp_path, "a.trig", PROV + ":g { :a :b 1, 2, 3, 4 }")
        with pytest.raises(LimitError):
            list(read_elements(path))


class TestTimedFiles:
    def test_the_place_in_the_order_gives_the_time(self, tmp_path: Path) -> None:
        write(tmp_path, "1.ttl", "<urn:a> <urn:p> 1, 2 .")
        write(tmp_path, "2.ttl", "")
        write(tmp_path, "3.nt", "<urn:a> <urn:p> <urn:b> .\noops\n")
        write(tmp_path, "4.rdf", "<!DOCTYPE x [<!ENTITY e 'e'>]><x/>")
        write(tmp_path, "5.jsonld", '{"@id": "urn:a", "urn:p": "x"}')
        good, bad = summary(tmp_path, start=100, step=timedelta(seconds=1))
        # A file of which part is wrong is left out whole: an element enters whole or not at all.
        assert good == [(100, 0, 2), (4100, 4 << 40, 1)]
        assert bad[0] == ("line 2", "the subject is not an IRI or a blank node")
        assert len(bad) == 2

    def test_a_step_or_a_predicate_is_needed(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError):
            read_elements(tmp_path, form=StreamForm.TIMED_FILES)


def test_elements_that_timed_lines_cannot_say_are_refused() -> None:
    s = IRI("urn:s")
    element = Element("urn:x", 1, 1, (Quad(s, s, s), Quad(s, s, s)))
    with pytest.raises(DataError):
        write_elements([element], io.StringIO())


def test_a_report_says_what_delay_is_needed(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.stream",
        "".join(f"{t} <urn:a> <urn:p> <urn:b> .\n" for t in (100, 300, 250, 400, 150)) + "oops\n",
    )
    report = validate(path)
    assert (report.elements, report.first, report.last) == (5, 100, 400)
    assert (report.out_of_order, report.max_lateness_ms, report.bad) == (2, 250, 1)
    assert not report.ok


def test_a_missing_path_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        list(read_elements(tmp_path / "none.stream"))
