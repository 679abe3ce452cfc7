"""Bodies in Jelly: frames are messages, unless the stream is flat; bad bytes are refused."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from quadweir.errors import DataError, QuadweirError
from quadweir.jelly import CONTENT_TYPE as JELLY
from quadweir.service.pushing import PushBody, read_push

pyjelly = pytest.importorskip("pyjelly", reason="the extra `jelly` is not installed")

from pyjelly import jelly  # noqa: E402
from pyjelly.integrations.generic.generic_sink import (  # noqa: E402
    IRI,
    BlankNode,
    DefaultGraph,
    GenericStatementSink,
    Literal,
    Quad,
    Triple,
)
from pyjelly.integrations.generic.serialize import (  # noqa: E402
    flat_stream_to_file,
    grouped_stream_to_file,
)
from pyjelly.serialize.streams import SerializerOptions  # noqa: E402

P = IRI("urn:p")


def grouped(*messages: list[Any]) -> bytes:
    sinks = []
    for each in messages:
        sink = GenericStatementSink()
        for statement in each:
            sink.add(statement)
        sinks.append(sink)
    out = io.BytesIO()
    options = SerializerOptions(logical_type=jelly.LOGICAL_STREAM_TYPE_GRAPHS)
    grouped_stream_to_file((each for each in sinks), out, options=options)
    return out.getvalue()


def flat(statements: list[Any]) -> bytes:
    out = io.BytesIO()
    flat_stream_to_file((each for each in statements), out)
    return out.getvalue()


def pushed(body: bytes) -> PushBody:
    return read_push(body, JELLY, "nquads", is_rdf=True, time_ms=7)


def test_frames_are_messages() -> None:
    one = Triple(IRI("urn:a"), P, Literal("1"))
    two = Triple(IRI("urn:b"), P, Literal("zwei", langtag="de"))
    three = Triple(BlankNode("x"), P, Literal("3", datatype="urn:t"))
    found = pushed(grouped([one, two], [three], [three]))
    assert found.values[0] == '<urn:a> <urn:p> "1" .\n<urn:b> <urn:p> "zwei"@de .'
    assert found.values[1].endswith('<urn:p> "3"^^<urn:t> .')
    assert found.values[1] != found.values[2]
    assert (found.statements, found.times) == (4, [7, 7, 7])


def test_graphs_of_a_flat_stream_are_elements() -> None:
    quads = [
        Quad(IRI(f"urn:{n}"), P, Literal("x"), graph)
        for n, graph in enumerate(
            (
                DefaultGraph,
                IRI("urn:g"),
                DefaultGraph,
            )
        )
    ]
    found = pushed(flat(quads))
    assert found.values == [
        '<urn:0> <urn:p> "x" .\n<urn:2> <urn:p> "x" .',
        '<urn:1> <urn:p> "x" <urn:g> .',
    ]


def test_what_is_no_jelly_is_refused() -> None:
    good = grouped([Triple(IRI("urn:a"), P, Literal("1"))] * 3, [Triple(P, P, P)])
    for body in (b"\x0a", b"<urn:a> <urn:b> <urn:c> .", b"\xff" * 1_000, good[:-3]):
        with pytest.raises(DataError):
            pushed(body)
    for bad in (Literal("1"), BlankNode("b")):
        with pytest.raises(DataError):
            pushed(grouped([Triple(IRI("urn:a"), bad, P)]))


def test_bytes_by_chance_are_errors_of_ours() -> None:
    dice = random.Random(7)
    good = grouped(*[[Triple(IRI(f"urn:{n}"), P, Literal(str(n)))] for n in range(20)])
    for _ in range(500):
        body = bytearray(good)
        for _ in range(dice.randrange(1, 6)):
            body[dice.randrange(len(body))] = dice.randrange(256)
        try:
            pushed(bytes(body))
        except QuadweirError:
            continue


def rows(*made: Any) -> bytes:
    frame = jelly.RdfStreamFrame()
    options = jelly.RdfStreamOptions(
        physical_type=jelly.PHYSICAL_STREAM_TYPE_TRIPLES,
        logical_type=jelly.LOGICAL_STREAM_TYPE_GRAPHS,
        max_name_table_size=8,
        max_prefix_table_size=8,
        max_datatype_table_size=8,
        version=1,
        rdf_star=True,
    )
    for row in ({"options": options}, *made):
        frame.rows.append(jelly.RdfStreamRow(**row))
    return bytes(frame.SerializeToString())


def test_a_long_name_that_many_statements_use_is_refused() -> None:
    name = {"name": jelly.RdfNameEntry(id=1, value="urn:" + "x" * 1_000_000)}
    iri = jelly.RdfIri(name_id=1)
    first = {"triple": jelly.RdfTriple(s_iri=iri, p_iri=iri, o_iri=iri)}
    body = rows(name, first, *[{"triple": jelly.RdfTriple()}] * 1_000)
    assert len(body) < 1_100_000
    with pytest.raises(QuadweirError) as caught:
        pushed(body)
    assert "characters" in caught.value.message


def test_quoted_triples_that_nest_deeply_are_refused() -> None:
    iri = jelly.RdfIri(name_id=1)
    inner = jelly.RdfTriple(s_iri=iri, p_iri=iri, o_iri=iri)
    for _ in range(60):
        inner = jelly.RdfTriple(s_iri=iri, p_iri=iri, o_triple_term=inner)
    body = rows({"name": jelly.RdfNameEntry(id=1, value="urn:x")}, {"triple": inner})
    with pytest.raises(QuadweirError):
        pushed(body)
