"""A1 to A5: what the answers of a report are, and which of them go out."""

import pytest

from quadweir.algebra.expressions import (
    AggregateCall,
    Arithmetic,
    Compare,
    Constant,
    Exists,
    FunctionCall,
    VariableExpression,
)
from quadweir.algebra.patterns import (
    Aggregation,
    Alternative,
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OneOrMore,
    OrderBy,
    OrderKey,
    PathPattern,
    Project,
    Slice,
    Union,
    WindowPattern,
)
from quadweir.algebra.query import AskForm, ConstructForm, ContinuousQuery, TemplateTriple
from quadweir.terms import IRI, Literal, Quad, Variable
from quadweir.testing import Answer, Oracle, diff_answers, same_answers
from quadweir.vocab import XSD
from streaming import (
    BAG,
    CHANGE,
    CLOSE,
    DSTREAM,
    GRAPH,
    ISTREAM,
    RSTREAM,
    inside,
    join,
    quads,
    query,
    run,
    seconds,
    short,
    stream,
    term,
    triples,
    values,
    window,
)

X, Y = Variable("x"), Variable("y")


def variable(name):
    return VariableExpression(variable=Variable(name))


# --- A1 -------------------------------------------------------------------------------------------


def test_A1_a_window_pattern_matches_its_own_content_alone():
    asked = query(
        join(inside("?x p ?y", "w"), inside("?x p ?z", "v")),
        window(seconds(10), name="w"),
        window(seconds(2), name="v"),
    )
    feed = stream((1, "a p 1"), (5, "a p 2"))
    assert sorted(v for t, v in values(asked, feed) if t == 5) == ["a 1 2", "a 2 2"]


def test_A1_patterns_outside_match_static_data():
    asked = query(join(inside("?x p ?y"), triples("?x q ?z")), window(seconds(10)))
    feed = stream((1, "a p 1 . a q 0"), (2, "b p 1"))
    assert values(asked, feed, static=quads("b q 7 . b p 9")) == [(2, "b 1 7"), (11, "b 1 7")]


def test_A1_named_graphs_of_the_static_data():
    pattern = join(inside("?x p ?y"), Graph(graph=Variable("g"), input=triples("?x q ?z")))
    asked = query(pattern, window(seconds(10)), select="g z")
    static = quads("a q 1", "one") + quads("a q 2", "two") + quads("a q 3")
    found = values(asked, stream((1, "a p 1")), static=static)
    assert sorted(found) == [(1, "one 1"), (1, "two 2")]


@pytest.mark.parametrize("content", [BAG, GRAPH])
def test_A1_a_subquery_in_a_graph_looks_at_that_graph_alone(content):
    inner = Project(input=triples("?x p ?y"), variables=(Variable("x"),))
    asked = query(
        join(inside("?x p ?y"), Graph(graph=Variable("g"), input=inner)),
        window(seconds(10), content),
        select="x g",
    )
    static = quads("b p 1", "one") + quads("a p 1", "two")
    assert values(asked, stream((1, "a p 1"), (1, "b q 1")), static=static) == [(1, "two a")]


def test_A1_from_clauses_choose_the_static_data():
    asked = query(
        join(inside("?x p ?y"), triples("?x q ?z")),
        window(seconds(10)),
        default_graphs=(IRI("urn:one"),),
        named_graphs=(IRI("urn:two"),),
    )
    static = quads("a q 1", "one") + quads("a q 2", "two") + quads("a q 3")
    assert values(asked, stream((1, "a p 1")), static=static) == [(1, "a 1 1")]


@pytest.mark.parametrize("content", [BAG, GRAPH])
def test_A1_windows_can_be_merged_into_the_default_graph(content):
    asked = query(
        triples("?x p ?y . ?x q ?z"),
        window(seconds(10), content, name="w"),
        window(seconds(10), content, name="v", over="other"),
        default_graph_windows=(IRI("urn:w"), IRI("urn:v")),
        default_graphs=(IRI("urn:static"),),
    )
    feed = stream((1, "a p 1")) + stream((2, "a q 2"), name="other")
    static = quads("a q 3 . a p 1", "static") + quads("a q 4")
    found = values(asked, feed, static=static)
    at_2 = sorted(words for t, words in found if t == 2)
    # In a graph the static and the streamed `a p 1` are one triple, in a bag they are two.
    assert at_2 == (["a 1 2", "a 1 3"] if content is GRAPH else ["a 1 2"] * 2 + ["a 1 3"] * 2)


def test_A1_merged_windows_without_from_see_no_static_data():
    asked = query(
        triples("?x p ?y"),
        window(seconds(10), GRAPH),
        default_graph_windows=(IRI("urn:w"),),
    )
    assert values(asked, stream((1, "a p 1")), static=quads("b p 2")) == [(1, "a 1")]


# --- A2 -------------------------------------------------------------------------------------------


def test_A2_rstream_gives_all_solutions_of_the_report():
    asked = query(inside("?x p ?y"), window(seconds(10)), output=RSTREAM)
    assert values(asked, stream((1, "a p 1"), (2, "b p 1"))) == [
        (1, "a 1"),
        (2, "a 1"),
        (2, "b 1"),
        (11, "b 1"),
    ]


def test_A2_istream_gives_what_was_not_in_the_report_before():
    asked = query(inside("?x p ?y"), window(seconds(10)), output=ISTREAM)
    assert values(asked, stream((1, "a p 1"), (2, "b p 1"))) == [(1, "a 1"), (2, "b 1")]


def test_A2_dstream_gives_what_is_gone():
    asked = query(inside("?x p ?y"), window(seconds(10)), output=DSTREAM)
    found = run(asked, stream((1, "a p 1"), (2, "b p 1"))).answers
    assert [short(answer) for answer in found] == [
        (11, "-", {"x": "a", "y": "1"}),
        (12, "-", {"x": "b", "y": "1"}),
    ]


@pytest.mark.parametrize(
    ("content", "expected"), [(BAG, [(1, "a 1"), (11, "a 1")]), (GRAPH, [(1, "a 1")])]
)
def test_A2_over_bags_an_equal_solution_of_a_new_element_is_new(content, expected):
    # The second a arrives just as the first expires.
    asked = query(inside("?x p ?y"), window(seconds(10), content), output=ISTREAM)
    assert values(asked, stream((1, "a p 1"), (11, "a p 1"))) == expected


def test_A2_derivations_are_seen_through_projections():
    inner = Project(input=inside("?x p ?y . ?y q ?z"), variables=(X,))
    asked = query(join(inner, triples("?x is thing")), window(seconds(10)), output=ISTREAM)
    feed = stream((1, "a p b . b q c"), (11, "a p d . d q e"))
    assert values(asked, feed, static=quads("a is thing")) == [(1, "a"), (11, "a")]


def test_A2_unions_keep_their_branches_apart():
    pattern = Union(inputs=(inside("?x p ?y"), inside("?x q ?y")))
    asked = query(pattern, window(seconds(10)), output=ISTREAM)
    assert values(asked, stream((1, "a p 1"), (11, "a q 1"))) == [(1, "a 1"), (11, "a 1")]


def count_of_y(pattern):
    counted = Aggregation(
        variable=Variable("n"), call=AggregateCall(function="COUNT", argument=variable("y"))
    )
    return Group(input=pattern, keys=(X,), aggregates=(counted,))


@pytest.mark.parametrize(
    "pattern",
    [
        count_of_y(inside("?x p ?y")),
        Distinct(input=Project(input=inside("?x p ?y"), variables=(X, Y))),
        LeftJoin(left=inside("?x p ?y"), right=inside("?x r ?z")),
        Minus(left=inside("?x p ?y"), right=inside("?x r ?y")),
        Filter(input=inside("?x p ?y"), condition=Exists(pattern=inside("?x r ?y"), negated=True)),
        Slice(input=Project(input=inside("?x p ?y"), variables=(X, Y)), limit=5),
    ],
    ids=["aggregate", "distinct", "optional", "minus", "not-exists", "limit"],
)
def test_A2_elsewhere_the_multisets_of_solutions_are_compared(pattern):
    asked = query(pattern, window(seconds(10), BAG), output=ISTREAM)
    found = run(asked, stream((1, "a p 1"), (11, "a p 1"))).answers
    # The second a makes an equal solution as the first leaves: nothing is new.
    assert [answer.t for answer in found] == [1]


@pytest.mark.parametrize(
    "pattern",
    [
        LeftJoin(left=inside("?x p ?y"), right=triples("?x r ?z")),
        Minus(left=inside("?x p ?y"), right=triples("?x r ?y")),
        Filter(input=inside("?x p ?y"), condition=Exists(pattern=triples("?x r ?y"), negated=True)),
    ],
    ids=["optional", "minus", "not-exists"],
)
def test_A2_static_data_takes_nothing_from_monotonicity(pattern):
    asked = query(pattern, window(seconds(10), BAG), output=ISTREAM)
    found = run(asked, stream((1, "a p 1"), (11, "a p 1"))).answers
    assert [answer.t for answer in found] == [1, 11]


def test_A2_multisets_keep_count():
    asked = query(inside("?x p ?y"), window(seconds(10), BAG), output=ISTREAM, select="x")
    assert values(asked, stream((1, "a p 1"), (2, "a p 2"), (2, "a p 3"))) == [
        (1, "a"),
        (2, "a"),
        (2, "a"),
    ]
    graph = query(inside("?x p ?y"), window(seconds(10), GRAPH), output=ISTREAM, select="x")
    # At 11 one of two equal solutions leaves and another one comes: the multisets are equal.
    assert values(graph, stream((1, "a p 1"), (2, "a p 2"), (11, "a p 3"))) == [
        (1, "a"),
        (2, "a"),
    ]


def test_A2_the_report_before_is_the_last_that_was_made():
    # On close: a is there at 10, gone at 20, there again at 30.
    asked = query(inside("?x p ?y"), window(seconds(10, 10), GRAPH), report=CLOSE, output=ISTREAM)
    assert values(asked, stream((1, "a p 1"), (21, "a p 1"))) == [(10, "a 1"), (30, "a 1")]


# --- A3 to A5 -------------------------------------------------------------------------------------


def test_A3_an_answer_carries_its_instant_and_sign():
    asked = query(inside("?x p ?y"), window(seconds(10)))
    (answer,) = run(asked, stream((3, "a p 1"))).answers
    assert answer == Answer.of(3, "+", {"x": IRI("urn:a"), "y": term("1")})
    assert answer.to_json() == {
        "t": 3,
        "sign": "+",
        "bindings": {
            "x": {"type": "uri", "value": "urn:a"},
            "y": {"type": "literal", "value": "1", "datatype": XSD.integer},
        },
    }


def ordered(limit=None, offset=0):
    keys = (OrderKey(expression=variable("y"), descending=True),)
    inner = Project(input=OrderBy(input=inside("?x p ?y"), keys=keys), variables=(X, Y))
    return Slice(input=inner, offset=offset, limit=limit)


def test_A4_order_and_limit_apply_within_one_report():
    asked = query(ordered(limit=2), window(seconds(10)))
    found = values(asked, stream((1, "a p 1"), (2, "b p 3"), (3, "c p 2")))
    assert [words for t, words in found if t == 3] == ["b 3", "c 2"]
    assert [words for t, words in found if t == 1] == ["a 1"]
    offset = query(ordered(limit=1, offset=1), window(seconds(10)))
    assert [v for t, v in values(offset, stream((1, "a p 1"), (1, "b p 3"))) if t == 1] == ["a 1"]


def test_A4_ties_under_limit_are_broken_by_spelling():
    feed = stream((1, "c p 1"), (1, "a p 1"), (1, "b p 1"))
    asked = query(ordered(limit=2), window(seconds(10)))
    assert values(asked, feed) == values(asked, feed[::-1]) == [(1, "a 1"), (1, "b 1")]


def test_A4_distinct_applies_within_one_report():
    pattern = Distinct(input=Project(input=inside("?x p ?y"), variables=(X,)))
    asked = query(pattern, window(seconds(10)), select="x")
    assert values(asked, stream((1, "a p 1"), (2, "a p 2"))) == [(1, "a"), (2, "a"), (11, "a")]


def test_A5_a_construct_answer_is_an_element_with_event_time_t():
    template = (TemplateTriple(subject=X, predicate=IRI("urn:seen"), object=Y),)
    asked = ContinuousQuery(
        form=ConstructForm(template=template),
        pattern=inside("?x p ?y"),
        windows=(window(seconds(10)),),
        output=ISTREAM,
    )
    found = Oracle(asked).answers(stream((1, "a p 1"), (4, "b p 2")))
    assert found == [
        Answer(1, "+", graph=frozenset(quads("a seen 1"))),
        Answer(4, "+", graph=frozenset(quads("b seen 2"))),
    ]


def test_A5_template_triples_that_are_no_triples_are_left_out():
    template = (
        TemplateTriple(subject=Y, predicate=IRI("urn:of"), object=X),
        TemplateTriple(subject=X, predicate=IRI("urn:of"), object=Variable("never")),
    )
    asked = ContinuousQuery(
        form=ConstructForm(template=template),
        pattern=inside("?x p ?y"),
        windows=(window(seconds(10)),),
    )
    assert Oracle(asked).answers(stream((1, "a p 1"))) == []


def test_A5_a_construct_answer_can_have_named_graphs():
    template = (
        TemplateTriple(subject=X, predicate=IRI("urn:of"), object=Y),
        TemplateTriple(subject=X, predicate=IRI("urn:in"), object=Y, graph=IRI("urn:g")),
        TemplateTriple(subject=X, predicate=IRI("urn:by"), object=Y, graph=Y),
    )
    asked = ContinuousQuery(
        form=ConstructForm(template=template),
        pattern=inside("?x p ?y"),
        windows=(window(seconds(10)),),
        output=ISTREAM,
    )
    found = Oracle(asked).answers(stream((1, "a p b"), (2, "a p 1")))
    # A graph that is a literal is none: its triple is left out.
    always = [("of", None), ("in", "g")]
    assert [answer.graph for answer in found] == [
        {quads(f"a {verb} {end}", graph)[0] for verb, graph in made}
        for end, made in (("b", [*always, ("by", "b")]), ("1", always))
    ]


def test_ask_answers_true_or_false_at_every_report():
    asked = ContinuousQuery(
        form=AskForm(), pattern=inside("?x p ?y"), windows=(window(seconds(10)),)
    )
    found = Oracle(asked).answers(stream((1, "a p 1")))
    assert [short(answer) for answer in found] == [
        (1, "+", {"boolean": "true"}),
        (11, "+", {"boolean": "false"}),
    ]


# --- what the evaluator has to get right ------------------------------------------------------------


def test_an_aggregate_without_groups_answers_over_nothing_too():
    total = Aggregation(variable=Variable("n"), call=AggregateCall(function="COUNT", argument=None))
    pattern = Group(input=inside("?x p ?y"), keys=(), aggregates=(total,))
    asked = query(pattern, window(seconds(10)))
    assert values(asked, stream((1, "a p 1"), (2, "a p 1"))) == [
        (1, "1"),
        (2, "2"),
        (11, "1"),
        (12, "0"),
    ]


def test_count_distinct_star_counts_solutions_not_elements():
    call = AggregateCall(function="COUNT", argument=None, distinct=True)
    pattern = Group(
        input=inside("?x p ?y"),
        keys=(),
        aggregates=(Aggregation(variable=Variable("n"), call=call),),
    )
    asked = query(pattern, window(seconds(10)))
    assert values(asked, stream((1, "a p 1"), (2, "a p 1")))[1] == (2, "1")


def test_sample_and_group_concat_do_not_depend_on_order():
    def aggregated(function, separator=None):
        call = AggregateCall(function=function, argument=variable("y"), separator=separator)
        group = Group(
            input=inside("?x p ?y"),
            keys=(X,),
            aggregates=(Aggregation(variable=Variable("n"), call=call),),
        )
        return query(group, window(seconds(10)))

    feed = stream((1, "a p 3"), (1, "a p 1"), (1, "a p 2"))
    assert values(aggregated("SAMPLE"), feed) == [(1, "1 a")]
    assert values(aggregated("GROUP_CONCAT", "-"), feed) == [(1, "1-2-3 a")]


def test_now_is_the_report_instant():
    pattern = Extend(
        input=inside("?x p ?y"),
        variable=Variable("z"),
        expression=FunctionCall(function="NOW", arguments=()),
    )
    asked = query(pattern, window(seconds(10)), select="z")
    assert values(asked, stream((1500, "a p 1")))[0] == (1500, "1970-01-01T00:00:01.5Z")


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("content", [BAG, GRAPH])
def test_timestamp_is_the_time_of_the_element_that_bound_the_variable(content, merged):
    condition = Compare(
        operator="<",
        left=FunctionCall(function="TIMESTAMP", arguments=(variable("y"),)),
        right=FunctionCall(function="TIMESTAMP", arguments=(variable("z"),)),
    )
    basic = triples("?x p ?y . ?x q ?z")
    pattern = Filter(input=basic if merged else inside(basic), condition=condition)
    more = {"default_graph_windows": (IRI("urn:w"),)} if merged else {}
    asked = query(pattern, window(seconds(100), content), output=ISTREAM, **more)
    feed = stream((1, "a p 1"), (2, "a q 2"), (3, "b q 1"), (4, "b p 2"))
    assert values(asked, feed) == [(2, "a 1 2")]


def test_timestamp_in_a_graph_is_that_of_the_latest_carrier():
    pattern = Extend(
        input=inside("?x p ?y"),
        variable=Variable("when"),
        expression=FunctionCall(function="TIMESTAMP", arguments=(variable("y"),)),
    )
    asked = query(pattern, window(seconds(100), GRAPH), select="when")
    feed = stream((1, "a p 1"), (5, "a p 1"), (6, "b p 1"))
    assert sorted(words for t, words in values(asked, feed) if t == 6) == ["5", "6"]


def path(text_subject, steps, text_end):
    return BasicPattern(
        patterns=(PathPattern(subject=term(text_subject), path=steps, object=term(text_end)),)
    )


def link(name):
    return Link(predicate=IRI(f"urn:{name}"))


def test_paths_that_unfold_count_elements_in_a_bag():
    either = Alternative(paths=(link("p"), link("q")))
    asked = query(inside(path("?x", either, "?y")), window(seconds(100), BAG))
    feed = stream((1, "a p b"), (1, "a p b"), (1, "a q b"))
    assert values(asked, feed) == [(1, "a b")] * 3
    negated = NegatedSet(forward=(IRI("urn:q"),))
    asked = query(inside(path("?x", negated, "?y")), window(seconds(100), BAG))
    assert values(asked, feed) == [(1, "a b")] * 2


def test_paths_that_repeat_match_the_merge_of_a_bag():
    asked = query(
        inside(path("?x", OneOrMore(path=link("p")), "?y")),
        window(seconds(100), BAG),
        output=ISTREAM,
    )
    feed = stream((1, "a p b"), (2, "b p c"), (3, "b p c"))
    assert sorted(values(asked, feed)) == [(1, "a b"), (2, "a c"), (2, "b c")]


def test_a_literal_as_subject_matches_nothing():
    asked = query(inside(BasicPattern(patterns=triples('"l" p ?y').patterns)), window(seconds(10)))
    assert values(asked, stream((1, "a p 1"))) == []


def test_a_query_without_windows_reports_once():
    asked = query(triples("?x p ?y"))
    assert values(asked, [], static=quads("a p 1")) == [(0, "a 1")]


def test_values_and_filters_inside_optional_are_scoped_as_in_sparql():
    condition = Compare(operator=">", left=variable("z"), right=variable("y"))
    pattern = LeftJoin(left=inside("?x p ?y"), right=triples("?x q ?z"), condition=condition)
    asked = query(pattern, window(seconds(10)))
    found = values(asked, stream((1, "a p 1"), (1, "b p 5")), static=quads("a q 3 . b q 3"))
    assert sorted(found) == [(1, "a 1 3"), (1, "b 5")]


def test_arithmetic_keeps_its_parentheses():
    def number(text):
        return Constant(term=Literal(text, datatype=IRI(XSD.integer)))

    inner = Arithmetic(operator="-", left=number("7"), right=variable("y"))
    outer = Arithmetic(operator="-", left=number("10"), right=inner)
    pattern = Extend(input=inside("?x p ?y"), variable=Variable("z"), expression=outer)
    assert values(query(pattern, window(seconds(9)), select="z"), stream((1, "a p 2")))[0] == (
        1,
        "5",
    )


# --- comparing --------------------------------------------------------------------------------------


def test_answers_are_compared_as_multisets_of_terms():
    one = Answer.of(1, "+", {"x": Literal("1.50", datatype=IRI(XSD.decimal))})
    other = Answer.of(1, "+", {"x": Literal("1.5", datatype=IRI(XSD.decimal))})
    assert same_answers([one, other], [other, one])
    assert not same_answers([one, one], [one])
    assert not same_answers([one], [other])
    assert "missing" in diff_answers([one, one], [one])
    moved = Answer(2, "+", one.solution)
    assert diff_answers([one], [moved]).splitlines()[1:] == [
        f"  missing    1 x  {one}",
        f"  unexpected 1 x  {moved}",
    ]


def test_construct_answers_are_compared_without_their_blank_node_labels():
    def answer(label):
        node = term(f"_:{label}")
        return Answer(1, "+", graph=frozenset([Quad(node, IRI("urn:p"), IRI("urn:a"))]))

    assert same_answers([answer("x")], [answer("y")])


def test_an_undeclared_window_is_an_error_with_its_place():
    from quadweir.errors import PlanError
    from quadweir.spans import Span

    pattern = WindowPattern(window=IRI("urn:no"), input=triples("?x p ?y"), span=Span(3, 4))
    with pytest.raises(PlanError) as caught:
        run(query(pattern, window(seconds(10)), report=CHANGE), [])
    assert caught.value.span == Span(3, 4)
