"""The speed of the kernel's index and operators, in the set-ups of paper 001."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from quadweir.algebra.expressions import AggregateCall, VariableExpression
from quadweir.algebra.patterns import Aggregation
from quadweir.bench.kernel_pipeline import CHUNK, Measurement, Pipeline, hash_join, joined
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.keynegation import KeyNegation
from quadweir.kernel.multijoin import Join
from quadweir.kernel.relation import Operator
from quadweir.kernel.ring import RingIndex
from quadweir.kernel.ringentries import probe_all
from quadweir.terms import Variable

_Steps = list[tuple[Operator, tuple[Operator, ...]]]

INSERTS: Final = 10e6
PROBES: Final = 5e6
JOINED: Final = 1e6
AVERAGED: Final = 3e6


def _best(run: Callable[[], object], rounds: int) -> float:
    """The least CPU time of several runs."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return max(least, 1e-9)


def ring(*, quick: bool) -> Iterator[Measurement]:
    """Inserts and probes of the ring index (figures 9 to 12 of the paper)."""
    sizes = [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000, 10_000_000]
    rates = {}
    for size in sizes:
        for keys in (1_000, 10_000, 100_000, 1_000_000):
            if keys > size:
                continue
            insert, probe, follow = _ring_rates(size, keys)
            rates[size, keys] = insert
            at_target = (size, keys) == (1_000_000, 100_000)
            name = f"{size:,} mappings, {keys:,} keys"
            yield Measurement(
                f"inserts, {name}", insert, "/s", at_least=INSERTS if at_target else None
            )
            yield Measurement(
                f"probes, {name}",
                probe,
                "/s",
                at_least=PROBES if at_target else None,
                note=f"to the newest mapping; following rings {follow:,.0f} mappings/s",
            )
    same_keys = [rate for (_, keys), rate in rates.items() if keys == min(10_000, sizes[-1])]
    yield Measurement(
        "slowest / fastest insert, 10,000 keys, over all sizes",
        min(same_keys) / max(same_keys),
        "",
        note="a cliff would show here",
    )


def _ring_rates(size: int, keys: int) -> tuple[float, float, float]:
    random = np.random.default_rng(1)
    cells = np.zeros((size, 4), dtype=np.int64)
    cells[:size, 2] = random.integers(1, keys + 1, size)
    rows = np.arange(size, dtype=np.int64)
    index = RingIndex((2,), ring=3, linked=False)
    index.attach(cells)
    # Warm up: tables reach their final size, and all memory has been touched.
    index.insert(rows)

    def again() -> None:
        index.remove(rows)
        index.insert(rows)

    both = _best(again, 3)
    removal = _best(lambda: index.remove(rows), 1)
    insertion = _best(lambda: index.insert(rows), 1)
    for _ in range(2):
        removal = min(removal, _best(lambda: index.remove(rows), 1))
        insertion = min(insertion, _best(lambda: index.insert(rows), 1))
    insertion = min(insertion, max(both - removal, 1e-9))
    wanted = random.integers(1, keys + 1, min(size, 1_000_000))
    described = index.description
    probe_all(described, wanted[:1], 1)
    probing = _best(lambda: probe_all(described, wanted, 1), 3)
    few = wanted[: max(1, min(len(wanted), 2_000_000 * keys // size))]
    following = _best(lambda: probe_all(described, few, size), 1)
    return size / insertion, len(wanted) / probing, len(few) * (size / keys) / following


def join(*, quick: bool) -> Iterator[Measurement]:
    """Three windows joined by one value, compared with re-evaluation of the whole windows (figure
    13a).
    """
    gains = []
    for window in (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000):
        inputs = 100_000 if quick else 1_000_000
        values = window
        columns = [{"k": values, f"v{n}": 1 << 40} for n in range(3)]
        for eager in (True, False):
            pipeline = Pipeline(window, columns, joined(eager=eager), eager=eager)
            pipeline.fill()
            pipeline.run(inputs)
            how = "answers leave at once" if eager else "results kept and retracted"
            yield Measurement(
                f"3-way join, windows of {window:,}, 1 match a probe, {how}",
                pipeline.taken / pipeline.spent,
                "mappings/s",
                at_least=JOINED,
                note=f"{pipeline.made / pipeline.taken:.2f} answers a mapping",
            )
        gains.append((yield from _anew(pipeline, window, values)))
    yield Measurement(
        "  incremental / re-evaluated at every instant: least growth from one window to the next",
        min(after / before for before, after in pairwise(gains)),
        "x",
        at_least=1.0,
    )
    yield from _many_answers(quick=quick)


def _anew(pipeline: Pipeline, window: int, values: int) -> Generator[Measurement, None, float]:
    """Re-evaluate the windows of a pipeline; return the incremental rate divided by this one."""
    held = []
    for leaf in pipeline.leaves:
        table = leaf.table
        rows = np.arange(table.head, table.tail, dtype=np.int64)
        held.append(table.cells[table.places(rows), 2] - 2**62)
    found = hash_join(held, values)
    if found != pipeline.join.held():
        raise AssertionError(f"re-evaluated {found}, kept {pipeline.join.held()}")
    spent = _best(lambda: hash_join(held, values), 3 if window <= 100_000 else 1)
    ours = pipeline.taken / pipeline.spent
    per_tick = len(held) / spent
    now_and_then = per_tick * window / 100
    yield Measurement(
        f"  the same re-evaluated at every instant, windows of {window:,}", per_tick, "mappings/s"
    )
    yield Measurement(
        f"  incremental / re-evaluated at every instant, windows of {window:,}",
        ours / per_tick,
        "x",
    )
    yield Measurement(
        f"  incremental / re-evaluated 100 times a window, windows of {window:,}",
        ours / now_and_then,
        "x",
    )
    return ours / per_tick


def _many_answers(*, quick: bool) -> Iterator[Measurement]:
    """The paper's 10,000 values in larger windows: the number of answers decides the speed."""
    for window in (20_000,) if quick else (100_000, 1_000_000):
        values = 10_000
        columns = [{"k": values} for _ in range(3)]
        pipeline = Pipeline(window, columns, joined(eager=True), eager=True)
        each = (window // values) ** 2
        # The first windows are filled so that nothing is joined before the measured part.
        step = max(3, min(CHUNK, 3_000_000 // each))
        _fill_apart(pipeline, window)
        pipeline.run(max(step, min(100_000, 10_000_000 // each)), step=step)
        yield Measurement(
            f"3-way join, windows of {window:,}, 10,000 values",
            pipeline.made / pipeline.spent,
            "answers/s",
            note=f"{pipeline.made / pipeline.taken:,.0f} answers a mapping",
        )


def _fill_apart(pipeline: Pipeline, window: int) -> None:
    """Fill windows with mappings that are indexed but not joined with each other."""
    size = window
    instants = np.arange(size, dtype=np.int64)
    random = np.random.default_rng(3)
    for leaf in pipeline.leaves:
        from quadweir.kernel.spellings import ZERO
        from quadweir.kernel.window import Matches

        values = random.integers(0, 10_000, (size, 1)) + ZERO
        leaf.hear(Matches(instants, instants, values))
        leaf.advance(size - 1)
    pipeline.now = size
    pipeline.join.restore(pipeline.join.arrays() | {"begun": np.ones(1, dtype=np.int64)})


def _aggregate(function: str, argument: str, keys: tuple[str, ...]) -> Callable[..., Operator]:
    call = AggregateCall(
        function=function, argument=VariableExpression(variable=Variable(argument))
    )
    aggregation = Aggregation(variable=Variable("_:found"), call=call)

    def make(source: Operator, dictionary: Dictionary) -> Operator:
        return Aggregate(source, tuple(map(Variable, keys)), (aggregation,), dictionary)

    return make


def aggregates(*, quick: bool) -> Iterator[Measurement]:
    """AVG over one window; MIN and DISTINCT over a join of two (figures 13b and 13c); negation."""
    window = 10_000 if quick else 1_000_000
    for groups in (10, 1_000) if quick else (10, 1_000, 100_000):
        average = _aggregate("AVG", "x", ("g",))

        def above(
            leaves: list[Operator],
            dictionary: Dictionary,
            average: Callable[..., Operator] = average,
        ) -> _Steps:
            return [(average(leaves[0], dictionary), (leaves[0],))]

        pipeline = Pipeline(window, [{"g": groups, "x": 1_000_000}], above)
        pipeline.fill()
        pipeline.run(100_000 if quick else 1_000_000)
        yield Measurement(
            f"AVG, a window of {window:,}, {groups:,} groups",
            2 * pipeline.taken / pipeline.spent,
            "updates/s",
            at_least=AVERAGED,
            note="additions and removals; every instant is reported",
        )
    for name, make in (
        ("MIN", _aggregate("MIN", "x", ("g",))),
        ("DISTINCT", _distinct),
    ):
        yield from _over_a_join(name, make, quick=quick)
    yield from _negation(quick=quick)


def _distinct(source: Operator, dictionary: Dictionary) -> Operator:
    return Distinct(source, (Variable("g"), Variable("x")), dictionary)


def _over_a_join(name: str, make: Callable[..., Operator], *, quick: bool) -> Iterator[Measurement]:
    for selectivity in (0.1, 1) if quick else (0.01, 0.1, 1, 10, 100):
        # The join keeps window x selectivity results; beyond ten million the windows are smaller.
        window = 10_000 if quick else min(1_000_000, int(10_000_000 / selectivity))
        values = max(1, int(window / selectivity))

        def above(leaves: list[Operator], dictionary: Dictionary) -> _Steps:
            joining = Join(leaves, dictionary)
            return [(joining, tuple(leaves)), (make(joining, dictionary), (joining,))]

        columns = [{"k": values, "g": 1_000}, {"k": values, "x": 1_000}]
        pipeline = Pipeline(window, columns, above)
        pipeline.fill()
        pipeline.run(50_000 if quick else int(min(500_000, 5_000_000 / selectivity)))
        rate = pipeline.taken / pipeline.spent
        yield Measurement(
            f"{name} over a join of two windows of {window:,}, selectivity {selectivity:g}",
            rate,
            "mappings/s",
            note=f"{2 * selectivity * rate:,.0f} changes/s from the join",
        )


def _negation(*, quick: bool) -> Iterator[Measurement]:
    window = 10_000 if quick else 1_000_000

    def above(leaves: list[Operator], dictionary: Dictionary) -> _Steps:
        left, right = leaves
        key = (Variable("k"),)
        return [(KeyNegation(left, right, key, True, dictionary), (left, right))]

    for share in (0.1, 1, 10):
        values = int(window / share)
        pipeline = Pipeline(window, [{"k": values, "g": 1_000}, {"k": values}], above)
        pipeline.fill()
        pipeline.run(50_000 if quick else 500_000)
        yield Measurement(
            f"NOT EXISTS, two windows of {window:,}, {share:g} right rows a key",
            pipeline.taken / pipeline.spent,
            "mappings/s",
        )
