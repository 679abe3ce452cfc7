"""The kernel on one core, in the set-ups of paper 001, each figure with its target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from quadweir.bench import kernel_operators, kernel_resources, kernel_sharing
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.measure import machine
from quadweir.kernel.warm import warm_up

SECTIONS: Final[dict[str, Callable[..., Iterator[Measurement]]]] = {
    "ring": kernel_operators.ring,
    "join": kernel_operators.join,
    "aggregates": kernel_operators.aggregates,
    "memory": kernel_resources.memory,
    "queries": kernel_resources.queries,
    "sharing": kernel_sharing.sharing,
    "compilation": kernel_resources.compilation,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    quick: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections. Rates are per second of CPU time, which other load on the machine disturbs
    less.
    """
    found: dict[str, list[Measurement]] = {}
    on_step("compiling")
    warm_up()
    for name in sections:
        found[name] = []
        with one_core() if name != "compilation" else all_cores():
            for figure in SECTIONS[name](quick=quick):
                found[name].append(figure)
                on_step(f"{name}: {figure.name}")
    return _result(found, {"quick": quick})


def run_soak(
    elements: int, *, on_step: Callable[[str], None] = lambda _: None, step: int = 20_000
) -> dict[str, Any]:
    """Run for a long time, and measure whether the kernel's memory stays the same."""
    warm_up()
    with one_core():
        figures = list(kernel_resources.soak(elements, on_step, step))
    return _result({"soak": figures}, {"elements": elements})


def _result(found: dict[str, list[Measurement]], given: dict[str, Any]) -> dict[str, Any]:
    return {
        "benchmark": "kernel",
        "machine": machine(),
        "input": given,
        "sections": {name: [each.as_json() for each in figures] for name, figures in found.items()},
    }


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def all_cores() -> Iterator[None]:
    """Let this process use all cores again."""
    yield


def as_text(result: dict[str, Any]) -> str:
    """Write a result for people."""
    lines = [", ".join(f"{key} {value}" for key, value in result["machine"].items())]
    for section, figures in result["sections"].items():
        lines += ["", f"{section}:"]
        for each in figures:
            value = each["value"]
            shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"
            target = ""
            for key, words in (("at_least", "at least"), ("at_most", "at most")):
                if key in each:
                    verdict = "reached" if each["met"] else "MISSED"
                    target = f"  target {words} {each[key]:,.10g}: {verdict}"
            note = f"  ({each['note']})" if "note" in each else ""
            lines.append(f"  {each['name']:<76}{shown:>14} {each['unit']}{target}{note}")
    return "\n".join(lines)
