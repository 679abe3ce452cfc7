"""What each rule finds, what it leaves alone, and how the pipeline runs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from quadweir.algebra.analyze import compares_derivations
from quadweir.algebra.expressions import Constant
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    BasicPattern,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Pattern,
    Project,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render_expression
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.traverse import children, walk
from quadweir.errors import InternalError
from quadweir.optimize import Hints, UnsettledWarning, optimize, pipeline
from quadweir.optimize.flatten_joins import flatten_joins
from quadweir.optimize.pipeline import Phase
from quadweir.syntax import parse
from quadweir.terms import IRI, Variable

PREFIX = "PREFIX : <urn:> "


def optimized(body: str, **options: object) -> ContinuousQuery:
    return optimize(parse(PREFIX + body), **options).query  # type: ignore[arg-type]


def windowed(body: str) -> ContinuousQuery:
    return parse(
        f"{PREFIX}REGISTER RSTREAM :out AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT9S STEP PT9S]"
        f" FROM NAMED WINDOW :v ON :t [RANGE PT9S STEP PT9S] WHERE {{ {body} }}",
        dialect="rspql",
    )


def shape(node: Node) -> str:
    """Draw a pattern in a line: operators by initials, triples by predicate, filters by text."""
    match node:
        case Project():
            return shape(node.input)
        case Filter():
            return f"{shape(node.input)}[{render_expression(node.condition)}]"
        case BasicPattern():
            return "{" + " ".join(_predicate(each) for each in node.patterns) + "}"
        case Join() | Union():
            name = "J" if isinstance(node, Join) else "U"
            return f"{name}({', '.join(map(shape, node.inputs))})"
        case LeftJoin() | Minus():
            name = "L" if isinstance(node, LeftJoin) else "M"
            return f"{name}({shape(node.left)}, {shape(node.right)})"
        case WindowPattern() | Graph():
            name = node.window if isinstance(node, WindowPattern) else node.graph
            return f"{str(name).removeprefix('<urn:').rstrip('>')}:{shape(node.input)}"
        case Extend():
            return f"E({shape(node.input)})"
        case Group():
            return f"G({shape(node.input)})"
        case Values():
            return f"V{len(node.rows)}"
        case _:
            return f"{type(node).__name__}({', '.join(map(shape, children(node)))})"


def _predicate(pattern: Node) -> str:
    if isinstance(pattern, TriplePattern) and isinstance(pattern.predicate, IRI):
        return pattern.predicate.value.removeprefix("urn:")
    return "?"


def expressions(query: ContinuousQuery) -> Iterator[str]:
    return (render_expression(e.expression) for e in walk(query) if isinstance(e, Extend))


def test_constants_are_folded_but_errors_stay() -> None:
    query = optimized("SELECT (1 + 2 * 3 AS ?a) (1/0 AS ?b) (CONCAT('x', STR(5)) AS ?c) {}")
    assert sorted(expressions(query)) == ['"x5"', "(/ 1 0)", "7"]


def test_what_changes_by_itself_is_not_folded() -> None:
    query = optimized("SELECT (RAND() AS ?a) (NOW() AS ?b) (BNODE('x') AS ?c) {}")
    assert not any(isinstance(each, Constant) and each.span is None for each in walk(query))
    assert sorted(expressions(query)) == ['(BNODE "x")', "(NOW)", "(RAND)"]


def test_a_connective_keeps_only_what_decides() -> None:
    query = optimized("SELECT * { ?x :p ?v FILTER(true && ?v > 1 && (2 > 1 || ?v = 7)) }")
    assert shape(query.pattern) == "{p}[(> ?v 1)]"


def test_a_filter_that_is_never_true_leaves_nothing() -> None:
    assert shape(optimized("SELECT ?x { ?x :p ?v FILTER(1 > 2) }").pattern) == "V0"
    assert shape(optimized("SELECT ?x { ?x :q ?y { ?x :p ?v FILTER(:a) } }").pattern) == "V0"


def test_joins_and_unions_are_flat_and_basic_patterns_one() -> None:
    joined = optimized("SELECT * { ?x :p ?v { ?x :q ?y { ?y :r ?z } } {} }")
    assert shape(joined.pattern) == "{p q r}"
    union = optimized("SELECT * { { ?x :p ?v } UNION { { ?x :q ?v } UNION { ?x :r ?v } } }")
    assert shape(union.pattern) == "U({p}, {q}, {r})"


def test_a_filter_goes_to_the_triple_that_binds_its_variables() -> None:
    query = optimized("SELECT * { ?x :p ?v . ?x :q ?y . ?y :r ?z FILTER(?v > 1 && ?z = ?y) }")
    assert shape(query.pattern) == "J({p}[(> ?v 1)], {q}, {r}[(= ?z ?y)])"


def test_a_filter_goes_into_windows() -> None:
    query = optimize(
        windowed(
            "WINDOW :w { ?x :p ?v } WINDOW :v { ?x :q ?u } FILTER(?v > 1 && ?x != :a && ?u = ?v)"
        )
    ).query
    assert shape(query.pattern) == (
        "J(w:{p}[(&& (> ?v 1) (!= ?x <urn:a>))], v:{q}[(!= ?x <urn:a>)])[(= ?u ?v)]"
    )


def test_a_filter_passes_group_by_through_its_keys() -> None:
    query = optimized(
        "SELECT ?x (COUNT(*) AS ?k) { ?x :p ?v } GROUP BY ?x HAVING(?x != :a && COUNT(*) > 1)"
    )
    (group,) = (each for each in walk(query) if isinstance(each, Group))
    assert shape(group) == "G({p}[(!= ?x <urn:a>)])"
    assert sum(isinstance(each, Filter) for each in walk(query)) == 2


def test_part_of_an_optional_condition_goes_to_the_right() -> None:
    query = optimized("SELECT * { ?x :p ?v OPTIONAL { ?x :q ?y FILTER(?y = :b && ?v > 1) } }")
    assert shape(query.pattern) == "L({p}, {q}[(= ?y <urn:b>)])"
    (left_join,) = (each for each in walk(query) if isinstance(each, LeftJoin))
    assert left_join.condition is not None
    assert render_expression(left_join.condition) == "(> ?v 1)"


def test_a_timestamp_filter_does_not_pass_a_join() -> None:
    query = parse(
        PREFIX + "REGISTER QUERY q AS SELECT ?x FROM STREAM :s [RANGE 9s STEP 9s]"
        " WHERE { { ?x :p ?v } OPTIONAL { ?x :q ?y } FILTER(timestamp(?x) > 5) }",
        dialect="csparql",
    )
    found = shape(optimize(query).query.pattern)
    assert found == "quadweir:window:1:L({p}, {q})[(> (TIMESTAMP ?x) 5)]"


def test_a_condition_that_changes_by_itself_stays_where_it_is() -> None:
    query = optimized("SELECT * { ?x :p ?v . ?x :q ?y FILTER(RAND() < ?v && ?y = 1) }")
    assert shape(query.pattern) == "J({q}[(= ?y 1)], {p})[(< (RAND) ?v)]"
    query = optimized("SELECT * { ?x :p ?v OPTIONAL { ?x :q ?y FILTER(RAND() < ?y) } }")
    assert shape(query.pattern) == "L({p}, {q})"
    (left_join,) = (each for each in walk(query) if isinstance(each, LeftJoin))
    assert left_join.condition is not None


def test_a_filter_on_a_stream_variable_goes_in_where_the_block_binds_it_too() -> None:
    text = "SELECT * {{ STREAM ?s [RANGE 9s] {{ {} :p ?v }} FILTER(?s != :t) }}"
    inside = optimize(parse(PREFIX + text.format("?s"), dialect="cqels")).query
    assert shape(inside.pattern) == "quadweir:window:1:{p}[(!= ?s <urn:t>)]"
    (block,) = (each for each in walk(inside) if isinstance(each, WindowPattern))
    assert isinstance(block.input, Filter)
    outside = optimize(parse(PREFIX + text.format("?x"), dialect="cqels")).query
    (block,) = (each for each in walk(outside) if isinstance(each, WindowPattern))
    assert isinstance(block.input, BasicPattern)


def test_a_filter_does_not_come_between_binds_of_new_nodes() -> None:
    query = optimized(
        "SELECT * { BIND(BNODE('a') AS ?x) BIND(BNODE('a') AS ?y) FILTER(isBlank(?x)) }"
    )
    assert shape(query.pattern) == "E(E({}))[(ISBLANK ?x)]"


def test_the_same_window_or_graph_is_matched_once() -> None:
    query = optimize(windowed("WINDOW :w { ?x :p ?v } ?x :r ?z WINDOW :w { ?x :q ?y }")).query
    assert shape(query.pattern) == "J(w:{p q}, {r})"
    query = optimized(
        "SELECT * { GRAPH :g { ?x :p ?v } GRAPH :h { ?x :r ?u } GRAPH :g { ?x :q ?y } }"
    )
    assert shape(query.pattern) == "J(g:{p q}, h:{r})"


def test_what_all_branches_of_a_union_share_is_matched_once() -> None:
    query = optimized("SELECT * { { ?x :p ?v . ?x :q ?y } UNION { ?x :p ?v . ?x :r ?y } }")
    assert shape(query.pattern) == "J({p}, U({q}, {r}))"
    query = optimize(windowed("{ WINDOW :w { ?x :p ?v } } UNION { WINDOW :w { ?x :q ?v } }")).query
    assert shape(query.pattern) == "w:U({p}, {q})"


def test_unused_columns_are_dropped() -> None:
    query = optimized(
        "SELECT ?x { { SELECT ?x ?v (?v + 1 AS ?w) (?x AS ?u) { ?x :p ?v } } ?u :q ?x }"
    )
    (inner,) = (e for e in walk(query.pattern) if isinstance(e, Project) and e is not query.pattern)
    assert inner.variables == (Variable("x"), Variable("u"))
    assert sum(isinstance(each, Extend) for each in walk(query)) == 1


def test_unused_aggregates_are_dropped() -> None:
    query = optimized("SELECT ?k { { SELECT (COUNT(*) AS ?k) (SUM(?v) AS ?s) { ?x :p ?v } } }")
    (group,) = (each for each in walk(query) if isinstance(each, Group))
    assert [each.call.function for each in group.aggregates] == ["COUNT"]


def test_static_parts_that_belong_together_are_gathered() -> None:
    result = optimize(windowed("?x :q ?y WINDOW :w { ?x :p ?v } GRAPH :g { ?y :r ?z } ?a :s ?b"))
    found = sorted(shape(each) for each in result.static)
    # :s shares no variable with the others, though it is one basic pattern with :q.
    assert found == ["J({q}, g:{r})", "{s}"]
    assert all(not isinstance(each, WindowPattern) for part in result.static for each in walk(part))


def test_static_parts_that_share_nothing_are_not_gathered() -> None:
    body = (
        "GRAPH :g { ?x :q ?y } WINDOW :w { ?x :p ?v } GRAPH :h { ?y :r ?z } GRAPH :i { ?a :s ?b }"
    )
    result = optimize(windowed(body))
    assert sorted(map(shape, result.static)) == ["J(g:{q}, h:{r})", "i:{s}"]


def test_a_part_whose_value_may_differ_is_not_gathered() -> None:
    body = "GRAPH :g { ?x :q ?y FILTER(:f(?x)) } WINDOW :w { ?x :p ?v } GRAPH :h { ?y :r ?z }"
    result = optimize(windowed(body))
    (join,) = (each for each in walk(result.query) if isinstance(each, Join))
    assert len(join.inputs) == 3


def test_an_exists_is_not_cut_out_with_a_triple() -> None:
    # It would be tried for every match of the triple, and not only for those that join.
    query = optimized("SELECT * { ?x :p ?v . ?x :q ?y FILTER EXISTS { ?x :p ?v } }")
    assert shape(query.pattern).startswith("{p q}[")


def test_an_empty_group_drops_out_of_a_join() -> None:
    triple = TriplePattern(subject=Variable("x"), predicate=IRI("urn:p"), object=Variable("y"))
    graph = Graph(graph=IRI("urn:g"), input=BasicPattern(patterns=(triple,)))
    assert flatten_joins(Join(inputs=(BasicPattern(), graph))) is graph
    assert flatten_joins(Join(inputs=(BasicPattern(), BasicPattern()))) == BasicPattern()
    query = optimize(windowed("{ } WINDOW :w { ?x :p ?v } GRAPH :g { ?x :q ?y }")).query
    assert shape(query.pattern) == "J(w:{p}, g:{q})"


def test_the_smaller_input_comes_first_and_then_what_is_connected() -> None:
    query = optimized("SELECT * { ?y :r ?z . ?x :q ?y . ?a :s ?b . ?x :p 5 }")
    assert shape(query.pattern) == "{p q r s}"
    hints = Hints(predicates={IRI("urn:s"): 1, IRI("urn:r"): 2})
    query = optimized("SELECT * { ?y :r ?z . ?x :q ?y . ?a :s ?b . ?x :p 5 }", hints=hints)
    assert shape(query.pattern) == "{s r q p}"


# --- the pipeline -----------------------------------------------------------------------------


def test_every_run_of_a_rule_is_recorded() -> None:
    result = optimize(parse(PREFIX + "SELECT * { ?x :p ?v FILTER(?v > 1 + 1) }"))
    assert {step.phase for step in result.steps} == {
        *("simplify", "share", "push", "prune", "static", "order")
    }
    changed = [step.rule for step in result.steps if step.changed]
    assert changed == ["fold_constants"]
    assert result.steps[-1].query is result.query
    assert all(step.milliseconds >= 0 for step in result.steps)


@pytest.mark.parametrize(
    "body",
    [
        "BIND(NOW() AS ?n)",
        "BIND(timestamp(?x, :p, ?y) AS ?n)",
        "BIND(EXISTS { STREAM :t [RANGE 9s] { ?x :p ?z } } AS ?n)",
        "FILTER(1 = 1 || EXISTS { STREAM :t [RANGE 9s] { ?x :p ?z } })",
    ],
)
def test_A2_what_is_left_out_does_not_change_what_is_compared(body: str) -> None:
    query = parse(f"{PREFIX}SELECT ?x {{ STREAM :s [RANGE 9s] {{ ?x :p ?y }} {body} }}")
    assert not compares_derivations(query)
    assert not compares_derivations(optimize(query).query)
    # With RSTREAM nothing is compared, and it can go.
    rstream = replace(query, output=OutputOperator.RSTREAM)
    assert compares_derivations(optimize(rstream).query)


def test_a_query_with_nothing_to_gain_comes_back_as_it_is() -> None:
    query = parse(PREFIX + "SELECT ?x { ?x :p ?v }")
    assert optimize(query).query is query


def test_a_phase_that_does_not_settle_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    def swing(query: ContinuousQuery) -> ContinuousQuery:
        return replace(query, pattern=replace(query.pattern))

    monkeypatch.setattr(pipeline, "phases", lambda hints: (Phase("swing", 5, (swing,)),))
    with pytest.warns(UnsettledWarning, match="did not settle in 5 rounds"):
        optimize(parse(PREFIX + "SELECT ?x { ?x :p ?v }"))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda p: Project(input=p.input, variables=()), "variables of the answer"),
        (
            lambda p: replace(
                p,
                input=Extend(
                    input=p.input, variable=Variable("v"), expression=Constant(term=IRI("urn:a"))
                ),
            ),
            r"binds \?v twice",
        ),
    ],
)
def test_a_rule_that_breaks_the_tree_is_caught(
    broken: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(query: ContinuousQuery) -> ContinuousQuery:
        pattern: Pattern = broken(query.pattern)  # type: ignore[operator]
        return replace(query, pattern=pattern)

    monkeypatch.setattr(pipeline, "phases", lambda hints: (Phase("break", 1, (rule,)),))
    with pytest.raises(InternalError, match=message):
        optimize(parse(PREFIX + "SELECT ?x { ?x :p ?v }"))
