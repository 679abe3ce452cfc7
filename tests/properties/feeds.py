"""Generated streams and static data for the questions of `strategies.py`."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from properties.strategies import GRAPHS, STREAMS, elements, static_triples
from quadweir.terms import IRI, Quad
from quadweir.testing import Element

Feed = list[Element]


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    found = []
    for stream in STREAMS:
        for position, (time, quads) in enumerate(draw(elements(max_size=6))):
            found.append(Element(stream, time, position, quads))
    return found


@st.composite
def static_data(draw: st.DrawFn) -> list[Quad]:
    default = draw(static_triples(6))
    # Every graph that a query can name is there: FROM of a graph that is not is an error.
    named = [
        replace(quad, graph=IRI(graph))
        for graph in GRAPHS
        for quad in (*draw(static_triples(3)), Quad(IRI("urn:x"), IRI("urn:x"), IRI("urn:x")))
    ]
    return default + named
