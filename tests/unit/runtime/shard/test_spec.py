"""What workers are sent; no Spark is started."""

from __future__ import annotations

import pickle

from quadweir import register
from quadweir.algebra.dataset import Dataset
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import Axiom, AxiomKind, Schema
from quadweir.entailment.table import Table
from quadweir.functions import REGISTERED
from quadweir.kernel.staticrelations import Loaded
from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import plan_query
from quadweir.runtime.shard.functions import packed_functions
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.syntax.read import parse
from quadweir.terms import IRI


def test_workers_are_not_sent_the_schema() -> None:
    classes = [IRI(f"urn:class{number}") for number in range(20_000)]
    schema = Schema(tuple(Axiom(AxiomKind.SUBCLASS, one, IRI("urn:C")) for one in classes))
    query = parse("SELECT * { STREAM <urn:s> [RANGE 1s] { ?x a <urn:C> } }", dialect="cqels")
    table = Table.of(schema, needs_of(query))
    plan = plan_query(optimize(query).query, streams=("urn:s",), table=table)
    spec = ShardSpec(plan, Loaded(Dataset()))
    sent = pickle.dumps(spec)
    assert len(pickle.dumps(plan)) > 500_000
    # Spark's worker for streams in the driver takes no more than a megabyte.
    assert len(sent) < 50_000
    there = pickle.loads(sent).plan
    assert there == plan.for_shards() != plan
    # What a row that passed a test means to a shard is the same.
    assert [(each.way is None, each.view, each.key, each.leaves) for each in there.wanted] == [
        (each.way is None, each.view, each.key, each.leaves) for each in plan.wanted
    ]
    assert sum(each.way is not None for each in there.wanted) == 1


def test_workers_are_sent_the_functions_that_a_query_calls() -> None:
    register("urn:f:f", lambda text: text * 2)
    try:
        query = parse(
            "SELECT ?x { STREAM <urn:s> [RANGE 1s] { ?x <urn:p> ?y } FILTER(<urn:f:f>(?y) = 'aa') }",
            dialect="cqels",
        )
        plan = plan_query(optimize(query).query, streams=("urn:s",))
        packed = packed_functions(plan.query)
        sent = pickle.dumps(ShardSpec(plan, Loaded(Dataset()), functions=packed))
        REGISTERED.remove("urn:f:f")
        pickle.loads(sent)
        there = REGISTERED.get("urn:f:f")
        assert there is not None
        assert there.code is not None
        assert there.code("a") == "aa"
    finally:
        REGISTERED.remove("urn:f:f")
