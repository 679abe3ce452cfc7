"""Conditions as Spark columns agree with SPARQL, or report that they cannot decide."""

from __future__ import annotations

import itertools
import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quadweir.algebra.functions import default_context
from quadweir.algebra.patterns import Filter
from quadweir.algebra.scalar import holds
from quadweir.runtime.match.columns import judge, may_hold
from quadweir.runtime.match.edges import is_edge
from quadweir.syntax.read import parse
from quadweir.terms import IRI, BlankNode, Literal, Term, Variable
from quadweir.vocab import XSD

pytestmark = pytest.mark.spark

CONDITIONS = (
    "?x = <urn:a>",
    "<urn:a> != ?x",
    "?x = ?y",
    "?x != ?y",
    "?x = 5",
    "?x != 5",
    "?x < 5",
    "?x >= 2.5",
    "4.50 > ?x",
    '?x = "a"',
    '?x != "a"',
    "?x IN (<urn:a>, <urn:b>)",
    "?x NOT IN (<urn:a>, <urn:b>)",
    "isIRI(?x)",
    "isBlank(?x)",
    "isLiteral(?x)",
    "sameTerm(?x, 5)",
    "bound(?x)",
    'strstarts(str(?x), "urn:")',
    'strends(?x, "a")',
    'contains(str(?x), "a")',
    'contains(?x, "\\"")',
    "?x + 1 = 6",
    "?x * 2.5 - ?y < 12.5",
    "-?x <= ?y * ?y",
    "?x + ?y != 10",
    "?x = ?y * 1",
    "?x > ?y",
)
# Not computed by columns, or only in part.
OTHERS = ("?x / 2 = 2.5", "?x = 5e0", 'regex(str(?x), "a")', 'lang(?x) = "en"', "?x * ?x * ?x < 9")


def some_terms() -> list[Term]:
    numbers = ["5", "05", "+5", "-3", "5.0", "4.999999999999999999", "2.5", ".5", "5.", "5e0", " 5"]
    numbers += ["x", "", "9" * 17, "9" * 18, "9" * 19, "1." + "0" * 17 + "1", "5." + "0" * 18 + "1"]
    kinds = [
        IRI(XSD[name]) for name in ("integer", "decimal", "double", "int", "string", "boolean")
    ]
    return [
        *(Literal(text, kind) for text in numbers for kind in kinds),
        *(IRI(f"urn:{each}") for each in ("a", "b", "aa")),
        *(BlankNode(each) for each in ("a", "b")),
        *(Literal(text) for text in ("a", "ba", 'q"a', "a\\", "urn:a", "line\na")),
        Literal("a", language="en"),
        Literal("true", IRI(XSD.boolean)),
        Literal("2020-01-01", IRI(XSD.date)),
        Literal("5", IRI("urn:unknown")),
    ]


def condition_of(text: str):
    query = parse(f"SELECT * {{ ?x <urn:p> ?y FILTER ({text}) }}")
    pattern = query.pattern
    while not isinstance(pattern, Filter):
        pattern = pattern.input
    return pattern.condition


def test_columns_agree_with_the_evaluator(spark: SparkSession) -> None:
    dice = random.Random(1)
    terms = some_terms()
    pairs = [(one, one) for one in terms]
    pairs += [(one, other) for one in terms for other in dice.sample(terms, 3)]
    frame = spark.createDataFrame([(str(x), str(y)) for x, y in pairs], "x string, y string")
    named = {Variable("x"): F.col("x"), Variable("y"): F.col("y")}
    joined = [
        f"{one} {how} {other}"
        for one, other in itertools.pairwise(CONDITIONS)
        for how in ("||", "&&")
    ]
    texts = [*CONDITIONS, *(f"!({one})" for one in (*CONDITIONS, *joined)), *joined]
    texts += [
        *OTHERS,
        *(f"{one} && {other}" for one, other in zip(OTHERS, CONDITIONS, strict=False)),
    ]
    columns, asked = [], []
    for text in texts:
        condition = condition_of(text)
        may, verdict = may_hold(condition, named), judge(condition, named)
        is_known = F.expr("false") if verdict is None else verdict.known
        columns += [F.expr("true") if may is None else may, is_known]
        asked.append(condition)
    rows_found = frame.select(
        *(each.alias(str(place)) for place, each in enumerate(columns))
    ).collect()
    context = default_context()
    wrong, sure = [], 0
    for (x, y), row in zip(pairs, rows_found, strict=True):
        for place, (text, condition) in enumerate(zip(texts, asked, strict=True)):
            found = holds(condition, {Variable("x"): x, Variable("y"): y}, context, no_exists)
            may, is_known = row[2 * place], row[2 * place + 1]
            assert may is not None
            assert is_known is not None
            sure += is_known
            if (found and not may) or (is_known and found != may):
                wrong.append(f"{text} for {x} and {y}: {found}, but the column says {may}")
    assert wrong == []
    assert sure > len(pairs) * len(texts) / 3


def no_exists(*_: object) -> bool:
    raise AssertionError("there is no EXISTS here")


def test_of_times_those_go_on_that_are_the_earliest_or_latest_so_far(spark: SparkSession) -> None:
    times = [(0, 5), (1, 5), (0, 5), (0, 6), (1, 4), (0, 5), (0, -3), (1, 5), (0, 9), (0, -2)]
    frame = spark.createDataFrame(times, "number int, time bigint").coalesce(1)
    kept = frame.where(is_edge(spark, F.col("number"), F.col("time"), numbers=2))
    # What is the earliest so far is not noted as the latest: then another 5 goes on, once.
    expected = [(0, 5), (1, 5), (0, 5), (0, 6), (1, 4), (0, -3), (1, 5), (0, 9)]
    # Each task starts from the beginning, also when the same plan runs again.
    for _ in range(2):
        assert [tuple(row) for row in kept.collect()] == expected
    apart = spark.range(0, 8, numPartitions=4).where(
        is_edge(spark, F.lit(0), F.col("id") % 2, numbers=1)
    )
    assert apart.count() == 8


def test_where_the_latest_need_not_be_exact_few_times_go_on(spark: SparkSession) -> None:
    def kept(times: list[int]) -> list[int]:
        frame = spark.createDataFrame([(each,) for each in times], "time bigint").coalesce(1)
        near = is_edge(spark, F.lit(0), F.col("time"), numbers=1, exact=False)
        return [row.time for row in frame.where(near).collect()]

    rising = list(range(1_000, 101_000, 3))
    found = kept(rising)
    assert len(found) < len(rising) / 10
    assert found[0] == rising[0]
    assert 0 <= rising[-1] - found[-1] <= (rising[-1] - rising[0]) / 256
    # The earliest is exact, and so is the latest while there is little between.
    assert min(kept([5_000, 90_000, 89_000, 700, 90_100, 3])) == 3
    assert max(kept([1_000, 1_001, 1_100, 1_200, 1_201])) == 1_201
    # Nor does a time that cannot be stop the task.
    assert {*kept([2**63 - 1, -(2**63), 0, 2**63 - 1])} == {2**63 - 1, -(2**63)}
