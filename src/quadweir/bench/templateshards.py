"""Shards of templates for the kernel's benchmarks: many queries without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.shard import Shard
from quadweir.plan.program import program_of
from quadweir.sharing import QueryShape, Shapes, TemplateMember, template_of


def template_shards(
    queries: Sequence[ContinuousQuery],
    *,
    static: Dataset | None = None,
    streams: Sequence[str] = (),
) -> list[Shard]:
    """One shard for each shape among optimised queries; members have the queries' places."""
    shapes = Shapes(streams)
    members: dict[QueryShape, list[TemplateMember]] = {}
    for number, query in enumerate(queries):
        shaped = shapes.of(query)
        members.setdefault(shaped.shape, []).append(shaped.member(number, ALWAYS))
    found = []
    for shape, own in members.items():
        template = template_of(shape)
        program = program_of(template.query, streams=streams, template=template)
        shard = Shard(program, static=static, records=False)
        shard.change_members(own, ())
        found.append(shard)
    return found
