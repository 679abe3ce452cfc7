"""Many queries in the kernel alone: what one more costs (paper 004, figures 6 and 7).

Constants are those of LSBench's Q1, window lengths those of its Q4 and Q10. A shard runs the template;
matching is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import pyarrow as pa

from quadweir.bench import workloads
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.kernel.arrays import ALWAYS, Ints
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.heads import HeadSpec
from quadweir.kernel.shard import Shard
from quadweir.kernel.sharedshard import SharedShard
from quadweir.optimize import optimize
from quadweir.plan.nodes import Match
from quadweir.plan.program import program_of
from quadweir.sharing import Shaped, TemplateMember, shape_of, template_of
from quadweir.syntax import parse
from quadweir.terms import IRI

_USERS: Final = 100_000
_Columns = Callable[[Match, int], list[pa.Array]]
_HEADS: Final = (
    "SELECT ?user ?one {0}",
    "SELECT ?tag {0}",
    "SELECT ?one ?tag {0}",
    "SELECT ?user ?one ?tag {0}",
)
_SHARED_JOIN: Final = "WHERE {{ STREAM <urn:s> [RANGE {0}ms] {{ ?user <urn:creator_of> ?one . ?one <urn:hashtag> ?tag }} }}"


@final
@dataclass
class _Feed:
    """Runs a shard, and counts time and answers of the second half."""

    step: Callable[[Events, int], int]
    leaves: Callable[[], tuple[Match, ...]]
    columns: _Columns
    seconds: float = 0.0
    elements: int = 0
    answers: int = 0
    now: int = 0

    def run(self, steps: int, size: int, per_second: int) -> None:
        for turn in range(steps):
            times = self.now + np.arange(size, dtype=np.int64) * 1000 // per_second
            self.now = int(times[-1]) + 1
            places = np.arange(size, dtype=np.int64) + turn * size
            matches = {
                place: MatchColumns(times, places, self.columns(leaf, turn))
                for place, leaf in enumerate(self.leaves())
            }
            events = Events(matches, {}, {0: (int(times[0]), int(times[-1]))})
            began = time.process_time()
            answers = self.step(events, int(times[-1]) - 1)
            if turn >= steps // 2:
                self.seconds += time.process_time() - began
                self.elements += size
                self.answers += answers

    @property
    def rate(self) -> float:
        return self.elements / self.seconds

    def figures(self, name: str) -> Iterator[Measurement]:
        per_element = self.answers / self.elements
        note = f"{self.answers / self.seconds:,.0f} answers/s, {per_element:,.2f} an element"
        yield Measurement(name, self.rate, "elements/s", note=note)


def sharing(*, quick: bool) -> Iterator[Measurement]:
    """Constants, window lengths, members that come and go, and shapes with one join."""
    yield from _constants(quick=quick)
    yield from _lengths(quick=quick)
    yield from _shapes(quick=quick)


def _shaped(text: str) -> Shaped:
    return shape_of(optimize(parse(text, dialect="cqels")).query)


def _shard(text: str) -> Shard:
    template = template_of(_shaped(text).shape)
    return Shard(program_of(template.query, template=template), records=False)


def _names(kind: str, codes: Ints, count: int) -> pa.Array:
    names = pa.array([f"<urn:{kind}/{n}>" for n in range(count)])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


# --- constants --------------------------------------------------------------------------------


def _constants(*, quick: bool) -> Iterator[Measurement]:
    counts = (1, 100) if quick else (1, 100, 10_000, 100_000)
    size, steps = (1_000, 4) if quick else (50_000, 8)
    random = np.random.default_rng(4)

    def columns(_leaf: Match, _turn: int) -> list[pa.Array]:
        kinds = (("user", _USERS), ("predicate", 8), ("post", 50_000))
        return [_names(kind, random.integers(0, n, size), n) for kind, n in kinds]

    rates = {}
    for count in (counts[0], *counts):  # the first is warmed up
        shard = _shard(workloads.lsbench()["Q1"].text)
        members = [
            TemplateMember(n, (IRI(f"urn:user/{n * (_USERS // count)}"),), (1000,), ALWAYS)
            for n in range(count)
        ]
        began = time.perf_counter()
        shard.change_members(members, ())
        added = time.perf_counter() - began
        one = TemplateMember(count, (IRI("urn:user/1"),), (1000,), ALWAYS)
        began = time.perf_counter()
        shard.change_members([one], ())
        shard.change_members((), [count])
        changed = time.perf_counter() - began
        feed = _Feed(
            lambda events, through, shard=shard: len(shard.step(events, through)),  # type: ignore[misc]
            lambda shard=shard: shard.leaves,  # type: ignore[misc]
            columns,
        )
        feed.run(steps, size, 100_000)
        rates[count] = feed
    for count, feed in rates.items():
        yield from feed.figures(f"Q1, {count:,} constants")
    yield Measurement(
        f"{counts[-1]:,} members added in one call", added * 1e3, "ms", at_most=1000.0
    )
    yield Measurement("one member more, and gone again", changed * 1e3, "ms", at_most=10.0)
    yield Measurement(
        f"Q1, {counts[-1]:,} constants / 1", rates[counts[-1]].rate / rates[1].rate, "x"
    )


# --- window lengths ---------------------------------------------------------------------------


def _lengths(*, quick: bool) -> Iterator[Measurement]:
    counts: Mapping[str, Mapping[int, tuple[int, int]]] = {
        "Q4": {1: (2000, 30), 100: (2000, 30), 10_000: (1000, 18)},
        "Q10": {1: (2000, 40), 100: (1000, 40), 10_000: (20, 20)},
    }
    for query, sizes in counts.items():
        for count, (size, steps) in sizes.items():
            if quick and count > 100:
                continue
            yield from _of_lengths(query, count, 100 if quick else size, 4 if quick else steps)


def _of_lengths(query: str, count: int, size: int, steps: int) -> Iterator[Measurement]:
    text = workloads.lsbench()[query].text
    shaped, shard = _shaped(text), _shard(text)
    members = [
        TemplateMember(n, (), tuple(15_000 + n for _ in shaped.ranges), ALWAYS)
        for n in range(count)
    ]
    shard.change_members(members, ())
    feed = _Feed(
        lambda events, through: len(shard.step(events, through)), lambda: shard.leaves, _posts(size)
    )
    feed.run(steps, size, 1000)
    yield from feed.figures(f"{query}, {count:,} window lengths")


def _posts(size: int) -> _Columns:
    """Matches of who created a post, and of its one hashtag."""

    def columns(leaf: Match, turn: int) -> list[pa.Array]:
        # The same for all leaves.
        random = np.random.default_rng(turn)
        users, tags = random.integers(0, 2000, size), random.integers(0, 50, size)
        pattern = leaf.pattern
        assert pattern is not None
        posts = pa.array([f"<urn:post/{turn}/{n}>" for n in range(size)]).dictionary_encode()
        if str(pattern.predicate).endswith("hashtag>"):
            return [posts, _names("tag", tags, 50)]
        return [_names("user", users, 2000), posts]

    return columns


# --- shapes -----------------------------------------------------------------------------------


def _shapes(*, quick: bool) -> Iterator[Measurement]:
    size, steps = (100, 4) if quick else (2000, 20)
    texts = [head.format(_SHARED_JOIN.format(15_000 + place)) for place, head in enumerate(_HEADS)]
    rates = {}
    for count in (1, len(texts)):
        shared = SharedShard()
        for number, text in enumerate(texts[:count]):
            shaped = _shaped(text)
            template = template_of(shaped.shape)
            program = program_of(template.query, template=template)
            shared.add(HeadSpec(shaped.shape.name, program, [shaped.member(number, ALWAYS)]))
        feed = _Feed(
            lambda events, through, shared=shared: sum(  # type: ignore[misc]
                len(each) for each in shared.step(events, through).values()
            ),
            lambda shared=shared: shared.leaves,  # type: ignore[misc]
            _posts(size),
        )
        feed.run(steps, size, 1000)
        rates[count] = feed.rate
        yield from feed.figures(f"{count} shapes over one join, one network")
    yield Measurement(f"{len(texts)} shapes over one join / 1", rates[len(texts)] / rates[1], "x")
