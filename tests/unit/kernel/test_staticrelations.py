"""Static relations: each term once, rows in an order of their own, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import SourceError
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import FixedRelation
from quadweir.syntax import parse
from quadweir.terms import IRI, Literal, Variable
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import quads, stream

X, Y = Variable("x"), Variable("y")
BAG = [
    {X: IRI("urn:b"), Y: Literal("ü")},
    {X: IRI("urn:a")},
    {X: IRI("urn:b"), Y: IRI("urn:a")},
    {X: IRI("urn:a")},
]


def rows(relation: FixedRelation) -> list[list[str]]:
    dictionary = Dictionary()
    numbers = relation.numbers(dictionary)
    return [dictionary.spellings(row) for row in numbers]


def test_rows_are_in_an_order_of_their_own_and_as_often_as_they_are_there() -> None:
    found = FixedRelation.of_bag((X, Y), BAG)
    assert rows(found) == [
        ["<urn:a>", ""],
        ["<urn:a>", ""],
        ["<urn:b>", '"ü"'],
        ["<urn:b>", "<urn:a>"],
    ]
    again = FixedRelation.of_bag((X, Y), BAG[::-1])
    assert rows(again) == rows(found)
    assert again.digest == found.digest
    assert FixedRelation.of_bag((X, Y), BAG[1:]).digest != found.digest
    assert FixedRelation.of_bag((Y, X), BAG).digest != found.digest


@pytest.mark.parametrize("bag", [BAG, []])
def test_a_relation_comes_back_from_its_file(tmp_path: Path, bag: list) -> None:
    found = FixedRelation.of_bag((X, Y), bag)
    found.write(tmp_path / "r.arrow")
    back = FixedRelation.read(tmp_path / "r.arrow", (X, Y))
    assert rows(back) == rows(found)
    assert back.digest == found.digest


def test_a_relation_without_variables_has_only_a_count(tmp_path: Path) -> None:
    found = FixedRelation.of((), [], 3)
    found.write(tmp_path / "r.arrow")
    back = FixedRelation.read(tmp_path / "r.arrow", ())
    assert back.numbers(Dictionary()).shape == (3, 0)


def test_columns_in_chunks_are_one_relation() -> None:
    whole = pa.chunked_array([["<urn:c>", None, "<urn:a>"]])
    cut = pa.chunked_array([["<urn:c>"], [None, "<urn:a>"]])
    one, other = (FixedRelation.of((X,), [column], 3) for column in (whole, cut))
    assert one.digest == other.digest
    assert np.array_equal(one.codes[0], [-1, 0, 1])


def test_a_file_that_is_gone_or_damaged_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="gone"):
        FixedRelation.read(tmp_path / "none.arrow", (X,))
    (tmp_path / "bad.arrow").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match=r"bad\.arrow"):
        FixedRelation.read(tmp_path / "bad.arrow", (X,))


def test_A4_what_a_static_subquery_selects_decides_what_its_limit_keeps() -> None:
    text = """SELECT ?y ?x { STREAM <urn:s> [RANGE 10ms] { ?x <urn:p> ?z }
        { SELECT ?x ?y { ?x <urn:r> ?y } LIMIT 1 } }"""
    fed = ShardFeed(
        Shard.of(parse(text, dialect="cqels"), static=Dataset.of(quads("a r 2 . b r 1")))
    )
    assert fed.shard.program.why_not is None
    found = [fed.push(stream((1, "a p c . b p c"))), fed.finish()]
    assert [
        answer.to_json()["bindings"]["x"]["value"]
        for each in found
        for answer in as_answers(each, fed.shard.query)
    ] == ["urn:a"]
