"""The evaluator over window contents agrees with the oracle, which shares no code with it."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, example, given
from hypothesis import strategies as st

from properties.relations import PREFIXES, all_nodes, datasets, sliced_groups, tails, triples
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.moments import from_epoch_ms
from quadweir.algebra.signatures import Context
from quadweir.algebra.windows import Content
from quadweir.errors import QuerySyntaxError
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Element, Oracle

INSTANT = 10_000
_A = IRI("http://example.org/a")
feeds = st.lists(
    st.tuples(st.sampled_from("st"), st.integers(0, 4), st.lists(triples, min_size=1, max_size=3)),
    max_size=5,
).map(
    lambda rows: [
        Element(f"http://example.org/{stream}", 1 + 2_000 * step, place, tuple(content))
        for place, (stream, step, content) in enumerate(rows)
    ]
)
bodies = st.lists(
    st.one_of(
        st.builds("WINDOW :w {{ {} }}".format, sliced_groups),
        st.builds("WINDOW :v {{ {} }}".format, sliced_groups),
        st.builds("WINDOW ?w {{ {} }}".format, sliced_groups),
        st.builds("OPTIONAL {{ WINDOW :w {{ {} }} }}".format, sliced_groups),
        sliced_groups,
    ),
    min_size=1,
    max_size=2,
).map(" ".join)


# The oracle's engine would look into any graph here.
@example(
    "WINDOW :w { MINUS { ?x :p ?x . } { SELECT * { :a :p :a . } } }",
    "",
    [],
    [Element("http://example.org/s", 1, 0, (Quad(_A, IRI("http://example.org/p"), _A),))],
    Content.BAG,
)
@example(
    "WINDOW :w { ?x :p ?x . GRAPH ?g { { SELECT ?x { ?x :p ?x } } } }",
    "",
    [],
    [Element("http://example.org/s", 1, 0, (Quad(_A, IRI("http://example.org/p"), _A),))],
    Content.BAG,
)
@given(bodies, tails, datasets, feeds, st.sampled_from(Content))
def test_the_evaluator_agrees_with_the_oracle(
    body: str, tail: str, quads: list[Quad], feed: list[Element], content: Content
) -> None:
    # The oracle's engine lets a path of no steps start at nodes of the graph only, and treats a
    # missing named graph sometimes as empty, sometimes as absent. So all graphs exist.
    quads = [*quads, *all_nodes]
    body = body.replace(":p*", ":p+").replace(":q?", ":q")
    text = (
        f"{PREFIXES}REGISTER RSTREAM <http://example.org/out> AS SELECT *"
        " FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT10S]"
        " FROM NAMED WINDOW :v ON :t [RANGE PT4S STEP PT10S]"
        f" WHERE {{ {body} }} {tail}"
    )
    try:
        query = parse(text, dialect="rspql", content=content)
    except QuerySyntaxError:
        assume(False)
    run = Oracle(query, static=quads).run(feed)
    assume(INSTANT in run.reports)
    expected = Counter(
        frozenset((name, str(term)) for name, term in answer.solution)
        for answer in run.answers
        if answer.t == INSTANT
    )
    windows = {
        IRI("http://example.org/w"): [e for e in feed if e.stream == "http://example.org/s"],
        IRI("http://example.org/v"): [
            e for e in feed if e.stream == "http://example.org/t" and e.event_time > 6_000
        ],
    }
    answer = evaluate(
        query, Dataset.of(quads), windows=windows, context=Context(now=from_epoch_ms(INSTANT))
    )
    assert isinstance(answer, Solutions)
    found = Counter(
        frozenset((variable.name, str(term)) for variable, term in row.items())
        for row in answer.rows
    )
    assert found == expected
