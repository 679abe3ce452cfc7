"""Queries call functions that users registered in Python, in every evaluator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from quadweir import IRI, Kind, Output, Parameter, register
from quadweir.algebra.functions import call, default_context, is_volatile, lookup
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.warn import warnings_of
from quadweir.errors import UsageError
from quadweir.functions import REGISTERED
from quadweir.kernel.shard import Shard
from quadweir.mapping.functions import FUNCTIONS
from quadweir.optimize import optimize
from quadweir.runtime.shard.functions import packed_functions
from quadweir.syntax import parse
from quadweir.terms import BlankNode, Literal, Term
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from quadweir.vocab import XSD
from streaming import stream


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    before = {function.iri for function in REGISTERED}
    yield
    for function in list(REGISTERED):
        if function.iri not in before:
            REGISTERED.remove(function.iri)


def literal(value: object, kind: str) -> Literal:
    return Literal(str(value), IRI(XSD[kind]))


def called(*terms: Term) -> Term:
    return call(IRI("urn:f:f"), terms, default_context())


def test_annotations_say_what_arguments_become() -> None:
    seen: list[Any] = []

    def code(text: str, count: int, size: float, flag: bool, rest="none") -> str:
        seen.append((text, count, size, flag, rest))
        return text

    register("urn:f:f", code)
    numbers = (literal("5", "integer"), literal("2.5", "decimal"), literal("true", "boolean"))
    assert called(IRI("urn:x"), *numbers) == Literal("urn:x")
    assert called(Literal("y"), *numbers, Literal("z", language="en")) == Literal("y")
    assert seen == [("urn:x", 5, 2.5, True, "none"), ("y", 5, 2.5, True, "z")]


@pytest.mark.parametrize(
    ("code", "term"),
    [
        (lambda text: text + "!", Literal("1!")),
        (lambda text: len(text), literal(1, "integer")),
        (lambda text: 0.5, literal("0.5", "double")),
        (lambda text: True, literal("true", "boolean")),
        (lambda text: IRI(f"urn:{text}"), IRI("urn:1")),
        (lambda text: Literal("a", language="en"), Literal("a", language="en")),
        (lambda text: [text], Literal("1")),
    ],
)
def test_what_is_returned_becomes_a_term(code: Any, term: Term) -> None:
    register("urn:f:f", code)
    assert called(Literal("1")) == term


def test_the_kind_of_an_output_is_its_datatype() -> None:
    register("urn:f:f", lambda text: text, ["urn:f:in"], returns=["urn:out"], kind=Kind.DATE)
    assert called(Literal("2024-01-01")) == literal("2024-01-01", "date")

    def double(number: float) -> float:
        return 2 * number

    register("urn:f:f", double)
    assert called(literal(1, "integer")) == literal("2", "double")
    register("urn:f:f", lambda n: int(n) * 2, [Parameter("n", ("urn:n",), Kind.INTEGER)],
             returns=[Output(("urn:out",), Kind.NUMBER)])  # fmt: skip
    assert called(literal(1, "integer")) == literal("2", "double")


def test_a_function_over_series_gets_one_of_a_single_value() -> None:
    register("urn:f:f", lambda texts: texts.str.upper(), ["urn:f:in"], vectorized=True)
    assert called(Literal("a")) == Literal("A")
    assert isinstance(pd.Series(["a"]).str.upper(), pd.Series)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (lambda text: None, (Literal("a"),)),
        (lambda text: 1 / 0, (Literal("a"),)),
        (lambda text: [text, text], (Literal("a"),)),
        (lambda text: text, ()),
        (lambda text: text, (Literal("a"), Literal("b"))),
        (lambda text: text, (BlankNode("b"),)),
    ],
)
def test_what_has_no_value_is_an_expression_error(code: Any, arguments: tuple[Term, ...]) -> None:
    register("urn:f:f", code)
    with pytest.raises(ExpressionError):
        called(*arguments)


def test_numbers_are_numbers() -> None:
    def count(number: int) -> int:
        return number

    register("urn:f:f", count)
    assert called(literal("2.0", "decimal")) == literal(2, "integer")
    for term in (literal("2.5", "decimal"), Literal("2"), IRI("urn:2")):
        with pytest.raises(ExpressionError):
            called(term)


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="not an absolute IRI"):
        register("shout", str.upper)
    with pytest.raises(UsageError, match="which has no place"):
        register("urn:f:f", lambda *texts: "")
    register("urn:f:f", lambda a: a)
    assert lookup(IRI("urn:f:f")) is not None
    REGISTERED.remove("urn:f:f")
    assert lookup(IRI("urn:f:f")) is None


def test_queries_and_mappings_share_one_registry() -> None:
    function = register("urn:f:f", lambda text: text, ["urn:f:in"])
    assert FUNCTIONS.get("urn:f:f") is function
    FUNCTIONS.remove("urn:f:f")
    assert lookup(IRI("urn:f:f")) is None


def test_a_registered_function_is_known_and_misspellings_are_reported() -> None:
    register("http://example.org/function/knots", lambda text: text)
    text = "SELECT ?x { ?x <urn:p> ?y FILTER(<http://example.org/function/%s>(?y)) }"
    assert warnings_of(parse(text % "knots")) == ()
    (warning,) = warnings_of(parse(text % "knot"))
    assert warning.hint == "Did you mean <http://example.org/function/knots>?"


def test_a_function_of_whims_is_volatile() -> None:
    register("urn:f:f", lambda text: text, deterministic=False)
    register("urn:f:g", lambda text: text)
    assert is_volatile(IRI("urn:f:f"))
    assert not is_volatile(IRI("urn:f:g"))
    assert not is_volatile(IRI("urn:f:unknown"))


FILTERED = """SELECT ?x (<urn:f:f>(?y) AS ?z) { STREAM <urn:s> [RANGE 5ms] { ?x <urn:p> ?y }
  FILTER(<urn:f:f>(?y) > 3) }"""
# Evaluated at every report, as no operator keeps a subquery with a limit up to date.
RECOMPUTED = """SELECT ?x (<urn:f:f>(?y) AS ?z) { STREAM <urn:s> [RANGE 5ms] { ?x <urn:p> ?y }
  { SELECT ?x { ?x <urn:r> ?o } ORDER BY <urn:f:f>(?o) LIMIT 1 } }"""
FEED = stream((1, "a p 1"), (2, "b p 2"), (3, "c p c"), (9, "a p 3"))


@pytest.mark.parametrize(
    "text", [FILTERED, RECOMPUTED, FILTERED.replace("RANGE 5ms", "RANGE 5ms SLIDE 2ms")]
)
def test_kernel_and_oracle_call_the_same_function(text: str) -> None:
    def twice(number: int) -> int:
        return 2 * number

    register("urn:f:f", twice)
    from streaming import quads

    static = quads("a r 2 . b r 1 . a r 0")
    expected = Oracle(text, static=static).answers(FEED)
    assert expected
    found = by_the_kernel(optimize(parse(text)).query, static)
    assert diff_answers(expected, found) == ""


def by_the_kernel(query: ContinuousQuery, static: Any) -> list[Any]:
    from quadweir.algebra.dataset import Dataset
    from quadweir.testing.shards import scoped_static

    fed = ShardFeed(Shard.of(query, static=Dataset.of(scoped_static(static)), streams=["urn:s"]))
    return as_answers(fed.push(list(FEED)), query) + as_answers(fed.finish(), query)


def test_another_process_gets_the_code() -> None:
    offset = 40

    def add(number: int) -> int:
        return number + offset

    register("urn:f:f", add)
    register("urn:f:other", add)
    packed = packed_functions(parse(FILTERED))
    script = (
        "import sys; from quadweir.runtime.shard.functions import install_functions;"
        "install_functions(sys.stdin.buffer.read());"
        "from quadweir.functions import REGISTERED;"
        "print([each.iri for each in REGISTERED], REGISTERED.get('urn:f:f').code(2))"
    )
    ran = subprocess.run([sys.executable, "-c", script], input=packed, capture_output=True)
    assert ran.stdout.decode().strip() == "['urn:f:f'] 42", ran.stderr.decode()


def test_code_that_cannot_be_sent_is_refused_with_its_name() -> None:
    lock = __import__("threading").Lock()
    register("urn:f:f", lambda text: str(lock))
    with pytest.raises(UsageError, match="urn:f:f cannot be sent"):
        packed_functions(parse(FILTERED))
    assert packed_functions(parse("ASK {}")) == b""
