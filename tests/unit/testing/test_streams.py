"""S1 to S4: elements, event times, blank nodes, late elements."""

from quadweir.algebra.expressions import Compare, VariableExpression
from quadweir.algebra.patterns import Filter
from quadweir.algebra.query import ConstructForm, ContinuousQuery, TemplateTriple
from quadweir.algebra.windows import AllScope, CountScope, CountUnit
from quadweir.terms import IRI, BlankNode, Quad, Variable
from quadweir.testing import Oracle, blank_label
from streaming import (
    GRAPH,
    ISTREAM,
    inside,
    join,
    query,
    run,
    seconds,
    short,
    stream,
    values,
    window,
)


def test_S1_an_element_enters_a_window_whole():
    last_one = CountScope(unit=CountUnit.TRIPLES, size=1)
    asked = query(inside("?x p ?y"), window(last_one))
    # The last triple is one of three in its element: all three are in.
    feed = stream((1, "a p 1"), (2, "b p 1 . b p 2 . b p 3"))
    assert values(asked, feed) == [(1, "a 1"), (2, "b 1"), (2, "b 2"), (2, "b 3")]


def test_S1_only_the_named_stream_counts():
    asked = query(inside("?x p ?y"), window(seconds(10)))
    feed = stream((1, "a p 1")) + stream((1, "b p 2"), name="other")
    assert values(asked, feed) == [(1, "a 1")]


def test_S2_event_time_is_that_of_the_envelope():
    asked = query(inside("?x p ?y"), window(seconds(10)))
    assert run(asked, stream((7, "a p 1"))).reports == [7, 17]


def test_S2_event_time_comes_from_a_predicate_inside():
    asked = query(inside("?x p ?y"), window(seconds(10), at="when"))
    feed = stream((7, "a p 1 . a when 40"), (8, "b p 1 . b when 30"))
    assert values(asked, feed) == [(30, "b 1"), (40, "a 1")]


def test_S2_times_are_read_from_dates_and_from_plain_strings():
    asked = query(inside("?x p ?y"), window(seconds(1000), at="when"))
    plain = Quad(IRI("urn:a"), IRI("urn:when"), _literal("1970-01-01 00:00:05"))
    dated = Quad(IRI("urn:b"), IRI("urn:when"), _dated("1970-01-01T01:00:06.25+01:00"))
    feed = [
        _with(stream((0, "a p 1"))[0], plain),
        _with(stream((0, "x x x"), (0, "b p 2"))[1], dated),
    ]
    assert values(asked, feed) == [(5000, "a 1"), (6250, "b 2")]


def test_S2_an_element_without_its_time_is_a_dead_letter_and_stops_nothing():
    asked = query(inside("?x p ?y"), window(seconds(10), at="when"))
    feed = stream((1, "a p 1"), (2, "b p 1 . b when 5"), (3, "c p 1 . c when soon"))
    found = run(asked, feed)
    assert [short(answer) for answer in found.answers] == [(5, "+", {"x": "b", "y": "1"})]
    assert [(element.position, "value" in why or "time" in why) for element, why in found.dead] == [
        (0, True),
        (2, True),
    ]


def test_S3_a_blank_node_belongs_to_its_stream():
    same = query(
        join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
        window(seconds(10), over="s", name="w"),
        window(seconds(10), over="s", name="v"),
    )
    across = query(
        join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
        window(seconds(10), over="s", name="w"),
        window(seconds(10), over="other", name="v"),
    )
    feed = stream((1, "_:b p 1"), (2, "_:b q 2")) + stream((2, "_:b q 2"), name="other")
    assert values(same, feed) == [(2, f"_:{blank_label('urn:s', 'b')} 1 2")]
    assert values(across, feed) == []


def test_S3_static_blank_nodes_are_not_those_of_a_stream():
    asked = query(join(inside("?x p ?y"), inside("?x p ?y")), window(seconds(10)))
    assert len(values(asked, stream((1, "_:b p 1")))) == 1
    from streaming import quads, triples

    with_static = query(join(inside("?x p ?y"), triples("?x q ?z")), window(seconds(10)))
    assert values(with_static, stream((1, "_:b p 1")), static=quads("_:b q 2")) == []


def test_S3_construct_makes_a_new_blank_node_for_each_solution():
    template = (
        TemplateTriple(subject=BlankNode("n"), predicate=IRI("urn:of"), object=Variable("x")),
        TemplateTriple(subject=BlankNode("n"), predicate=IRI("urn:is"), object=Variable("y")),
    )
    asked = ContinuousQuery(
        form=ConstructForm(template=template),
        pattern=inside("?x p ?y"),
        windows=(window(seconds(10)),),
    )
    one, other = Oracle(asked).answers(stream((1, "a p 1"), (1, "b p 2")))
    assert one.graph is not None
    assert other.graph is not None
    nodes = [{quad.subject for quad in answer.graph or ()} for answer in (one, other)]
    assert [len(each) for each in nodes] == [1, 1]
    assert nodes[0] != nodes[1]


def test_S4_an_element_not_later_than_the_watermark_is_late_and_changes_nothing():
    asked = query(inside("?x p ?y"), window(seconds(100)), output=ISTREAM)
    feed = stream((20, "a p 1"), (15, "b p 1"), (10, "c p 1"), (11, "d p 1"))
    found = run(asked, feed, delay_ms=10)
    assert [element.position for element in found.late] == [2]
    assert [short(answer)[2]["x"] for answer in found.answers] == ["d", "b", "a"]


def test_S4_without_delay_elements_of_the_newest_instant_still_come_together():
    asked = query(inside("?x p ?y"), window(seconds(100)), output=ISTREAM)
    found = run(asked, stream((5, "a p 1"), (5, "b p 1"), (6, "c p 1"), (5, "d p 1")), delay_ms=0)
    assert [element.position for element in found.late] == [3]


def test_S4_the_watermark_of_a_query_is_the_lowest_of_its_streams():
    asked = query(
        join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
        window(AllScope(), name="w"),
        window(AllScope(), name="v", over="other"),
    )
    fast = stream((50, "a p 1"), (20, "b p 1"))
    slow = stream((20, "a q 1"), (30, "c q 1"), name="other")
    # While the slow stream stands at 20, an element of 20 in the fast one is not yet too late...
    found = run(asked, [fast[0], slow[0], fast[1]], delay_ms=1)
    assert found.late == []
    # ... and once it stands at 30, it is.
    found = run(asked, [fast[0], slow[0], slow[1], fast[1]], delay_ms=1)
    assert found.late == [fast[1]]


def test_S4_a_stream_that_was_not_heard_of_holds_the_watermark_back():
    asked = query(
        join(inside("?x p ?y", "w"), inside("?x q ?z", "v")),
        window(AllScope(), name="w"),
        window(AllScope(), name="v", over="other"),
    )
    assert run(asked, stream((50, "a p 1"), (1, "b p 1")), delay_ms=0).late == []


def test_S4_without_an_allowed_delay_given_the_order_of_arrival_is_of_no_account():
    asked = query(inside("?x p ?y"), window(seconds(3), GRAPH))
    feed = stream((1, "a p 1"), (2, "b p 1"), (9, "c p 1"))
    assert values(asked, feed) == values(asked, feed[::-1])


def test_a_filter_sees_the_windows_values():
    condition = Compare(operator=">", left=_variable("y"), right=_variable("z"))
    pattern = Filter(input=inside("?x p ?y . ?x q ?z"), condition=condition)
    feed = stream((1, "a p 1 . a q 2"), (2, "b p 2 . b q 1"))
    assert values(query(pattern, window(seconds(10))), feed)[0] == (2, "b 2 1")


def _variable(name):
    return VariableExpression(variable=Variable(name))


def _literal(text):
    from quadweir.terms import Literal

    return Literal(text)


def _dated(text):
    from quadweir.terms import Literal
    from quadweir.vocab import XSD

    return Literal(text, datatype=IRI(XSD.dateTime))


def _with(element, quad):
    from dataclasses import replace

    return replace(element, quads=(*element.quads, quad))
