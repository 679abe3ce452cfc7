"""Nodes check themselves, compare by meaning, and know nothing of places."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from quadweir.algebra.expressions import (
    AggregateCall,
    And,
    Bound,
    Compare,
    Constant,
    FunctionCall,
    Or,
)
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Distinct,
    Group,
    Join,
    Link,
    OrderBy,
    PathPattern,
    Project,
    Sequence,
    Slice,
    Union,
    Values,
    is_hidden,
)
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.algebra.streams import Tick
from quadweir.algebra.traverse import EXPRESSION_CLASSES, PATH_CLASSES, PATTERN_CLASSES
from quadweir.algebra.windows import (
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    TimeScope,
    Window,
)
from quadweir.errors import InternalError
from quadweir.spans import Span
from quadweir.terms import IRI, Literal, Variable

X = Variable("x")
UNIT = BasicPattern()
ONE = Constant(term=Literal("1"))
P = Link(predicate=IRI("urn:p"))
W = Window(name=IRI("urn:w"), stream=IRI("urn:s"), scope=NowScope(), content=Content.BAG)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Join(inputs=(UNIT,)),
        lambda: Union(inputs=(UNIT,)),
        lambda: And(parts=(ONE,)),
        lambda: Or(parts=()),
        lambda: Sequence(paths=(P,)),
        lambda: Alternative(paths=(P,)),
        lambda: PathPattern(subject=X, path=P, object=X),
        lambda: Compare(operator="~", left=ONE, right=ONE),
        lambda: FunctionCall(function="str", arguments=(ONE,)),
        lambda: AggregateCall(function="MEDIAN", argument=ONE),
        lambda: AggregateCall(function="SUM", argument=None),
        lambda: AggregateCall(function="SUM", argument=ONE, separator=","),
        lambda: AggregateCall(function="GROUP_CONCAT", argument=ONE),
        lambda: Values(variables=(X,), rows=((None, None),)),
        lambda: Values(variables=(X, X), rows=()),
        lambda: Project(input=UNIT, variables=(X, X)),
        lambda: Project(input=UNIT, variables=(Variable("_:1"),)),
        lambda: Group(input=UNIT, keys=(X, X), aggregates=()),
        lambda: OrderBy(input=UNIT, keys=()),
        lambda: Slice(input=UNIT, offset=-1),
        lambda: Slice(input=UNIT, limit=-1),
        lambda: TimeScope(range_ms=0),
        lambda: TimeScope(range_ms=1, step_ms=0),
        lambda: CountScope(unit=CountUnit.TRIPLES, size=0),
        lambda: CountScope(unit=CountUnit.TRIPLES, size=1, step=0),
        lambda: PastScope(from_ms=1, to_ms=1),
        lambda: Tick(every_ms=0),
        lambda: ContinuousQuery(form=AskForm(), pattern=UNIT, windows=(W, W)),
        lambda: ContinuousQuery(form=AskForm(), pattern=UNIT, default_graph_windows=(W.name,)),
    ],
)
def test_a_malformed_node_cannot_be_made(make: object) -> None:
    with pytest.raises(InternalError):
        make()  # type: ignore[operator]


def test_places_are_left_out_of_equality() -> None:
    here, there = Span(1, 1), Span(2, 2)
    assert Distinct(input=UNIT, span=here) == Distinct(input=UNIT, span=there)
    assert hash(Distinct(input=UNIT, span=here)) == hash(Distinct(input=UNIT, span=there))
    assert "span" not in repr(Distinct(input=UNIT, span=here))


def test_classes_are_distinguished() -> None:
    assert And(parts=(ONE, ONE)) != Or(parts=(ONE, ONE))


@pytest.mark.parametrize(
    "kind", [*PATTERN_CLASSES, *EXPRESSION_CLASSES, *PATH_CLASSES], ids=lambda kind: kind.__name__
)
def test_every_class_keeps_the_house_form(kind: type) -> None:
    assert is_dataclass(kind)
    assert issubclass(kind, Node)
    assert "__slots__" in vars(kind)
    assert kind.__doc__
    assert [field.name for field in fields(kind) if not field.compare] == ["span"]


def test_nodes_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        UNIT.patterns = ()  # type: ignore[misc]


def test_hidden_variables() -> None:
    assert is_hidden(Variable("_:count1"))
    assert not is_hidden(Variable("_"))


def test_windows_are_found_by_name() -> None:
    query = ContinuousQuery(form=AskForm(), pattern=UNIT, windows=(W,))
    assert query.window(IRI("urn:w")) is W
    with pytest.raises(KeyError):
        query.window(IRI("urn:v"))
    assert Bound(variable=X).variable is X
