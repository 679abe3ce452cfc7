"""Sections of golden cases: a query explained, translated and answered."""

from __future__ import annotations

from collections.abc import Callable

import small_lsbench
from quadweir.algebra.query import ContinuousQuery
from quadweir.commands.explain import as_text
from quadweir.plan.explanation import explanation
from quadweir.syntax import detect, parse
from quadweir.syntax.write import TARGETS, declared_prefixes, write
from quadweir.testing import Oracle

Options = dict[str, str]
_MOST_SHOWN = 6


def _ask(text: str, options: Options) -> ContinuousQuery:
    return parse(text, dialect=options.get("dialect"), allow=("FROM",))


def explained(text: str, options: Options) -> str:
    """What `quadweir explain` prints."""
    dialect = options.get("dialect") or detect(text)
    return as_text(explanation(_ask(text, options), dialect))


def translated(target: str) -> Callable[[str, Options], str]:
    """What `quadweir translate` prints, warnings last."""

    def make(text: str, options: Options) -> str:
        written = write(_ask(text, options), target, prefixes=declared_prefixes(text))
        warnings = [f"warning[{each.aspect}] {each.message}\n" for each in written.warnings]
        return written.text + "".join(warnings)

    return make


def answers(text: str, options: Options) -> str:
    """What the oracle answers over a few seconds of a small social network."""
    static = [*small_lsbench.static(), *small_lsbench.static_by_name()]
    run = Oracle(_ask(text, options), static=static).run(small_lsbench.feed(posts=12))
    lines = [f"{len(run.answers)} answers in {len(run.reports)} reports"]
    for answer in run.answers[:_MOST_SHOWN]:
        line = str(answer).replace(small_lsbench.SIB, "")
        lines.append(line.replace(str(answer.t), f"+{answer.t - small_lsbench.START}", 1))
    return "\n".join(lines) + "\n"


SECTIONS: dict[str, Callable[[str, Options], str]] = {
    "explained": explained,
    "answers": answers,
    **{f"in {target}": translated(target) for target in TARGETS},
}
