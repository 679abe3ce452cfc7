"""Static analysis: scopes, windows, monotonicity, what is compared, state bounds."""

import pytest

from quadweir.algebra.analyze import (
    analyze,
    compares_derivations,
    is_monotonic,
    refuse_unbounded,
    state_bounds,
    static_parts,
    windows_read,
)
from quadweir.algebra.expressions import (
    AggregateCall,
    Bound,
    Compare,
    Constant,
    Exists,
    FunctionCall,
    VariableExpression,
)
from quadweir.algebra.patterns import (
    Aggregation,
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    LeftJoin,
    Link,
    Minus,
    OrderBy,
    OrderKey,
    PathPattern,
    Project,
    Slice,
    Union,
    Values,
    WindowPattern,
    ZeroOrMore,
)
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.algebra.scopes import always_bound, in_scope, mentioned, visible
from quadweir.algebra.windows import AllScope, CountScope, CountUnit, NowScope, PastScope
from quadweir.errors import PlanError, UnboundedStateError
from quadweir.spans import Span
from quadweir.terms import IRI, Literal, Variable
from streaming import (
    BAG,
    DSTREAM,
    GRAPH,
    ISTREAM,
    RSTREAM,
    inside,
    join,
    query,
    seconds,
    term,
    triples,
    window,
)

X, Y, Z = Variable("x"), Variable("y"), Variable("z")


def names(variables):
    return " ".join(sorted(v.name for v in variables))


def expression(name):
    return VariableExpression(variable=Variable(name))


def counted(pattern, *keys, **call):
    arguments = {"function": "COUNT", "argument": None, **call}
    total = Aggregation(variable=Variable("n"), call=AggregateCall(**arguments))
    return Group(input=pattern, keys=keys, aggregates=(total,))


@pytest.mark.parametrize(
    ("pattern", "possible", "certain"),
    [
        (triples("?x p ?y"), "x y", "x y"),
        (BasicPattern(), "", ""),
        (join(triples("?x p 1"), triples("?y p 1")), "x y", "x y"),
        (Union(inputs=(triples("?x p ?y"), triples("?x p 1"))), "x y", "x"),
        (LeftJoin(left=triples("?x p 1"), right=triples("?x p ?y")), "x y", "x"),
        (Minus(left=triples("?x p 1"), right=triples("?x p ?y")), "x", "x"),
        (Values(variables=(X, Y), rows=((IRI("urn:a"), None),)), "x y", "x"),
        (Extend(input=triples("?x p 1"), variable=Y, expression=expression("x")), "x y", "x y"),
        (Extend(input=triples("?x p 1"), variable=Y, expression=expression("z")), "x y", "x"),
        (
            Extend(input=BasicPattern(), variable=Y, expression=Constant(term=Literal("c"))),
            "y",
            "y",
        ),
        (Graph(graph=Z, input=triples("?x p 1")), "x z", "x z"),
        (WindowPattern(window=Z, input=triples("?x p 1")), "x z", "x z"),
        (counted(triples("?x p ?y"), X), "n x", "n x"),
        (counted(triples("?x p ?y"), Z), "n z", "n"),
        (
            counted(triples("?x p ?y"), X, function="SUM", argument=expression("y")),
            "n x",
            "x",
        ),
        (Project(input=triples("?x p ?y"), variables=(X, Z)), "x z", "x"),
        (Slice(input=Distinct(input=triples("?x p ?y")), limit=1), "x y", "x y"),
    ],
)
def test_variables_in_scope_and_always_bound(pattern, possible, certain):
    assert names(in_scope(pattern)) == possible
    assert names(always_bound(pattern)) == certain


def test_hidden_variables_are_not_visible():
    pattern = triples("?x p ?_:1")
    assert names(in_scope(pattern)) == "_:1 x"
    assert visible(in_scope(pattern)) == (X,)


def test_variables_inside_exists_are_not_mentioned():
    both = Compare(operator="=", left=expression("x"), right=Bound(variable=Y))
    assert names(mentioned(both)) == "x y"
    assert mentioned(Exists(pattern=triples("?x p ?y"))) == frozenset()


def test_the_variable_of_a_stream_is_in_scope():
    asked = query(inside("?x p 1"), window(seconds(5), over="?stream"))
    assert names(in_scope(asked.pattern.input, asked)) == "stream x"


def test_which_windows_are_read():
    pattern = Filter(
        input=join(triples("?x p 1"), inside("?x p 1", "w")),
        condition=Exists(pattern=inside("?x q 1", "v")),
    )
    asked = query(
        pattern, window(seconds(1)), window(seconds(1), name="v"), window(NowScope(), name="u")
    )
    found = analyze(asked)
    assert found.windows_read == (IRI("urn:w"), IRI("urn:v"))
    assert found.windows_unused == (IRI("urn:u"),)


def test_bare_patterns_read_the_windows_of_the_default_graph():
    asked = query(triples("?x p 1"), window(seconds(1)), default_graph_windows=(IRI("urn:w"),))
    assert windows_read(asked.pattern, asked) == {IRI("urn:w")}
    graph = query(
        Graph(graph=IRI("urn:g"), input=triples("?x p 1")),
        window(seconds(1)),
        default_graph_windows=(IRI("urn:w"),),
    )
    assert windows_read(graph.pattern, graph) == frozenset()


def test_static_parts_are_the_largest():
    static = LeftJoin(left=triples("?x q ?y"), right=triples("?y r ?z"))
    pattern = join(
        inside("?x p 1"),
        static,
        inside(join(triples("?x p 2"), Graph(graph=IRI("urn:g"), input=triples("?x s 1")))),
    )
    asked = query(pattern, window(seconds(1)))
    assert static_parts(asked) == (static,)
    merged = query(static, window(seconds(1)), default_graph_windows=(IRI("urn:w"),))
    assert static_parts(merged) == ()


def test_what_changes_by_itself_is_not_static():
    now = FunctionCall(function="NOW", arguments=())
    pattern = join(inside("?x p 1"), Extend(input=triples("?x q 1"), variable=Y, expression=now))
    assert static_parts(query(pattern, window(seconds(1)))) == (triples("?x q 1"),)


WINDOWED = inside("?x p ?y")
STATIC = triples("?x q ?z")
MONOTONIC = {
    "pattern": WINDOWED,
    "join": join(WINDOWED, STATIC),
    "union": Union(inputs=(WINDOWED, STATIC)),
    "filter": Filter(input=WINDOWED, condition=expression("y")),
    "bind": Extend(input=WINDOWED, variable=Z, expression=expression("y")),
    "project": Project(input=WINDOWED, variables=(X,)),
    "order": OrderBy(input=WINDOWED, keys=(OrderKey(expression=expression("x")),)),
    "static optional": LeftJoin(left=WINDOWED, right=STATIC),
    "static minus": Minus(left=WINDOWED, right=STATIC),
    "static exists": Filter(input=WINDOWED, condition=Exists(pattern=STATIC, negated=True)),
    "static group": join(WINDOWED, counted(STATIC, X)),
}
OTHERS = {
    "optional": LeftJoin(left=STATIC, right=WINDOWED),
    "minus": Minus(left=STATIC, right=WINDOWED),
    "exists": Filter(input=STATIC, condition=Exists(pattern=WINDOWED)),
    "group": counted(WINDOWED, X),
    "distinct": Distinct(input=WINDOWED),
    "limit": Slice(input=WINDOWED, limit=1),
    "exists in the window": inside(
        Filter(input=triples("?x p ?y"), condition=Exists(pattern=triples("?x q 1")))
    ),
    "below a join": join(STATIC, Distinct(input=WINDOWED)),
}


@pytest.mark.parametrize("name", MONOTONIC)
def test_monotonic_patterns(name):
    asked = query(MONOTONIC[name], window(seconds(1)))
    assert is_monotonic(asked.pattern, asked)
    assert compares_derivations(asked)


@pytest.mark.parametrize("name", OTHERS)
def test_other_patterns(name):
    asked = query(OTHERS[name], window(seconds(1)))
    assert not is_monotonic(asked.pattern, asked)
    assert not compares_derivations(asked)


def test_what_else_keeps_from_comparing_derivations():
    assert not compares_derivations(query(WINDOWED, window(seconds(1), GRAPH)))
    assert not compares_derivations(query(STATIC, window(seconds(1))))
    now = FunctionCall(function="NOW", arguments=())
    volatile = Extend(input=WINDOWED, variable=Z, expression=now)
    assert not compares_derivations(query(volatile, window(seconds(1))))
    step = ZeroOrMore(path=Link(predicate=IRI("urn:p")))
    closure = inside(BasicPattern(patterns=(PathPattern(subject=X, path=step, object=Y),)))
    assert not compares_derivations(query(closure, window(seconds(1))))
    ask = ContinuousQuery(form=AskForm(), pattern=WINDOWED, windows=(window(seconds(1)),))
    assert not compares_derivations(ask)
    mixed = join(inside("?x p 1", "w"), inside("?x p 1", "v"))
    windows = window(seconds(1), BAG), window(seconds(1), GRAPH, name="v")
    assert not compares_derivations(query(mixed, *windows))


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (seconds(90_000), "the elements of the last 1 min 30 s"),
        (seconds(1000, 500), "the elements of the last 1 s, and of up to one step (500 ms) more"),
        (CountScope(unit=CountUnit.TRIPLES, size=5), "the last 5 triples"),
        (
            CountScope(unit=CountUnit.ELEMENTS, size=1, step=3),
            "the last 1 element, and up to 3 more",
        ),
        (NowScope(), "the elements of one instant"),
        (PastScope(from_ms=5000, to_ms=10), "the elements of the last 5 s"),
    ],
)
def test_state_bounds_in_words(scope, text):
    (bound,) = state_bounds(query(WINDOWED, window(scope)))
    assert bound.bounded
    assert bound.text == f"{text}, and those within the allowed delay"


def all_window(content=BAG):
    return window(AllScope(span=Span(2, 7)), content)


@pytest.mark.parametrize(
    "asked",
    [
        query(join(inside("?x p ?y"), inside("?x q ?z")), all_window(), output=ISTREAM),
        query(inside("?x p ?y . ?x q ?z"), all_window(), output=ISTREAM),
        query(WINDOWED, all_window(), output=RSTREAM),
        query(WINDOWED, all_window(), output=DSTREAM),
        query(WINDOWED, all_window(GRAPH), output=ISTREAM),
        query(counted(WINDOWED, X), all_window(), output=ISTREAM),
        query(counted(WINDOWED, distinct=True), all_window(), output=ISTREAM),
        query(Distinct(input=Project(input=WINDOWED, variables=(X, Y))), all_window()),
    ],
)
def test_W5_all_is_refused_with_its_place(asked):
    with pytest.raises(UnboundedStateError) as caught:
        refuse_unbounded(asked)
    assert caught.value.code == "QW-UNBOUNDED"
    assert caught.value.span == Span(2, 7)
    refuse_unbounded(asked, allowed=frozenset({IRI("urn:w")}))
    refuse_unbounded(asked, allowed=frozenset({IRI("urn:s")}))


@pytest.mark.parametrize(
    "asked",
    [
        query(WINDOWED, all_window(), output=ISTREAM),
        query(join(WINDOWED, STATIC), all_window(), output=ISTREAM),
        query(Union(inputs=(WINDOWED, inside("?x q ?y"))), all_window(), output=ISTREAM),
        query(counted(WINDOWED), all_window(), output=RSTREAM),
    ],
)
def test_W5_all_is_fine_where_nothing_has_to_be_kept(asked):
    refuse_unbounded(asked)


def test_an_undeclared_window_is_refused():
    pattern = WindowPattern(window=term("nowhere"), input=triples("?x p 1"), span=Span(5, 3))
    with pytest.raises(PlanError) as caught:
        analyze(query(pattern, window(seconds(1))))
    assert caught.value.span == Span(5, 3)
    with pytest.raises(PlanError):
        analyze(query(WindowPattern(window=X, input=triples("?x p 1"))))
