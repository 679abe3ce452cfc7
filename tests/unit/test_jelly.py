"""Jelly: what is written is read again, by us and by pyjelly; what is hostile is refused."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import DataError
from quadweir.jelly import read_frames, read_jelly, write_jelly
from quadweir.terms import IRI, BlankNode, Literal, Quad
from terms_strategy import QUADS

pytest.importorskip("pyjelly")

from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.integrations.generic.parse import parse_jelly_flat
from pyjelly.jelly import rdf_pb2
from pyjelly.options import StreamParameters
from pyjelly.serialize.streams import GraphStream, SerializerOptions, TripleStream

S, P = IRI("urn:s"), IRI("http://e.org/p#a")


def _labelled(quad: Quad) -> Quad:
    def label(given: str) -> str:
        plain = re.fullmatch(r"(?!j-)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?", given)
        return given if plain else f"j-{given.encode().hex()}"

    return quad.relabelled(label)


@given(st.lists(QUADS, max_size=20), st.booleans())
def test_what_is_written_is_read_again(quads: list[Quad], delimited: bool) -> None:
    data = b"".join(write_jelly(quads, delimited=delimited))
    assert list(read_jelly(data)) == [_labelled(quad) for quad in quads]


@given(st.lists(QUADS, min_size=1, max_size=20))
def test_pyjelly_reads_what_we_write(quads: list[Quad]) -> None:
    data = io.BytesIO(b"".join(write_jelly(quads)))
    found = list(parse_jelly_flat(data))
    assert [_from_generic(one) for one in found] == quads


def _from_generic(quad: generic.Quad) -> Quad:
    def term(one: object) -> object:
        match one:
            case generic.IRI():
                return IRI(one._iri)
            case generic.BlankNode():
                return BlankNode(one._identifier)
            case generic.Literal():
                if one._langtag:
                    return Literal(one._lex, language=one._langtag)
                return Literal(one._lex, IRI(one._datatype)) if one._datatype else Literal(one._lex)
            case generic.Triple():
                from quadweir.terms import TripleTerm

                return TripleTerm(*(term(each) for each in one))
            case _:
                return None

    return Quad(*(term(each) for each in quad))


def _written(stream_class: type, statements: list[object]) -> bytes:
    out = io.BytesIO()
    options = SerializerOptions(params=StreamParameters(generalized_statements=True, rdf_star=True))
    from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder, stream_frames
    from pyjelly.serialize.ioutils import write_delimited

    stream = stream_class(encoder=GenericSinkTermEncoder(), options=options)
    for frame in stream_frames(stream, (one for one in statements)):
        write_delimited(frame, out)
    return out.getvalue()


def test_other_types_of_streams_are_read() -> None:
    a, b = generic.IRI("http://e.org/a"), generic.IRI("http://e.org/b")
    triples = [generic.Triple(a, b, generic.Literal("x", "EN")), generic.Triple(b, b, a)]
    assert [str(quad) for quad in read_jelly(_written(TripleStream, triples))] == [
        '<http://e.org/a> <http://e.org/b> "x"@en .',
        "<http://e.org/b> <http://e.org/b> <http://e.org/a> .",
    ]
    quads = [generic.Quad(a, b, a, b), generic.Quad(b, b, a, generic.DefaultGraph)]
    assert [str(quad) for quad in read_jelly(_written(GraphStream, quads))] == [
        "<http://e.org/a> <http://e.org/b> <http://e.org/a> <http://e.org/b> .",
        "<http://e.org/b> <http://e.org/b> <http://e.org/a> .",
    ]


def test_namespaces_are_passed_over() -> None:
    out = io.BytesIO()
    sink = generic.GenericStatementSink()
    sink.bind("e", generic.IRI("http://e.org/"))
    sink.add(generic.Triple(*[generic.IRI("http://e.org/a")] * 3))
    params = StreamParameters(namespace_declarations=True)
    from pyjelly.integrations.generic.serialize import grouped_stream_to_file

    grouped_stream_to_file((one for one in [sink]), out, options=SerializerOptions(params=params))
    assert len(list(read_jelly(out.getvalue()))) == 1


def test_frames_are_cut_and_kept_apart() -> None:
    quads = [Quad(S, P, Literal(str(number))) for number in range(1000)]
    frames = list(write_jelly(quads))
    assert len(frames) > 3
    assert [quad for part in read_frames(b"".join(frames)) for quad in part] == quads
    assert len(list(read_frames(b"".join(frames)))) == len(frames)
    text = sum(len(str(quad)) + 1 for quad in quads)
    assert sum(map(len, frames)) < text / 2


def test_nothing_is_no_quads() -> None:
    assert list(write_jelly([])) == []
    assert list(read_jelly(b"")) == []


def _frame(*rows: object, **options: int) -> bytes:
    given = {
        "physical_type": 2,
        "max_name_table_size": 16,
        "max_prefix_table_size": 8,
        "max_datatype_table_size": 8,
        "version": 1,
        **options,
    }
    first = rdf_pb2.RdfStreamRow(options=rdf_pb2.RdfStreamOptions(**given))
    return rdf_pb2.RdfStreamFrame(rows=[first, *rows]).SerializeToString()


def _quad(**terms: object) -> rdf_pb2.RdfStreamRow:
    given: dict[str, object] = {"s_bnode": "a", "p_bnode": "b", "o_bnode": "c", "g_bnode": "g"}
    for name in terms:
        given.pop(f"{name[0]}_bnode", None)
    return rdf_pb2.RdfStreamRow(quad=rdf_pb2.RdfQuad(**{**given, **terms}))


def _name(value: str, number: int = 0) -> rdf_pb2.RdfStreamRow:
    return rdf_pb2.RdfStreamRow(name=rdf_pb2.RdfNameEntry(id=number, value=value))


IRI_1 = rdf_pb2.RdfIri(name_id=1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff" * 20, "no frame of Jelly begins here"),
        (b"\x80\x80\x80\x80\x10" + b"x" * 10, "a frame of more than"),
        (b"<urn:s> <urn:p> <urn:o> .\n", "the stream ends inside a frame of 60 bytes"),
        (b"\x05\x01\x02\x03\x04\x05", "frame 1 is not Jelly"),
        (b"\x80", "ends inside the length"),
        (rdf_pb2.RdfStreamFrame(rows=[_name("x")]).SerializeToString(), "does not begin with"),
        (_frame(max_name_table_size=5000), "a table of 5000 entries"),
        (_frame(version=3), "version 3"),
        (_frame(_name("x", 17)), "entry 17 of a table of 16"),
        (_frame(_quad(p_iri=IRI_1)), "entry 1 of a table is used before it is set"),
        (_frame(_name("urn:p"), _quad(p_bnode="x")), "generalized statement"),
        (_frame(_name("no scheme"), _quad(p_iri=IRI_1)), "not an absolute IRI"),
        (
            _frame(
                _name("urn:p"),
                _quad(p_iri=IRI_1, o_literal=rdf_pb2.RdfLiteral(lex="x", langtag="e n")),
            ),
            "not a language tag",
        ),
        (
            _frame(_name("urn:p"), _quad(p_iri=IRI_1, g_literal=rdf_pb2.RdfLiteral(lex="x"))),
            "a literal as the name of a graph",
        ),
        (
            _frame(
                _name("urn:p"),
                rdf_pb2.RdfStreamRow(quad=rdf_pb2.RdfQuad(p_iri=IRI_1, o_bnode="x", g_bnode="g")),
            ),
            "the first statement has no subject",
        ),
    ],
)
def test_what_is_not_jelly_has_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        list(read_jelly(data))


def test_a_frame_cannot_unpack_to_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadweir.jelly.MOST_CHARACTERS", 100_000)
    long = rdf_pb2.RdfLiteral(lex="x" * 1000)
    same = rdf_pb2.RdfStreamRow(quad=rdf_pb2.RdfQuad())
    data = _frame(_name("urn:p"), _quad(p_iri=IRI_1, o_literal=long), *[same] * 200)
    with pytest.raises(DataError, match="more than 100000 characters"):
        list(read_jelly(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_quads_or_an_error(data: bytes) -> None:
    try:
        list(read_jelly(data))
    except DataError as error:
        assert error.message


@given(st.lists(QUADS, min_size=1, max_size=5), st.data())
def test_a_changed_byte_is_quads_or_an_error(quads: list[Quad], data: st.DataObject) -> None:
    written = bytearray(b"".join(write_jelly(quads)))
    place = data.draw(st.integers(0, len(written) - 1))
    written[place] = data.draw(st.integers(0, 255))
    try:
        for quad in read_jelly(bytes(written)):
            assert str(quad).endswith(" .")
    except DataError as error:
        assert error.message


def test_frames_of_a_file_are_read_as_they_come() -> None:
    quads = [Quad(S, P, Literal(str(number))) for number in range(600)]
    first, *rest = write_jelly(quads)
    file = io.BytesIO(first + b"".join(rest)[:-3])
    found = []
    with pytest.raises(DataError, match="ends inside a frame"):
        for quad in read_jelly(file):
            found.append(quad)
    assert found == quads[: len(found)]
    assert len(found) > 400
