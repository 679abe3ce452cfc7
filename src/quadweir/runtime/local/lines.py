"""Answers of a run in this process as lines: the same lines that column expressions make.

Solutions take the way of `sinks/answertext.py`. `runtime/constructing.py` fills in the
template of a CONSTRUCT.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from quadweir import rows
from quadweir.algebra.query import ConstructForm, ContinuousQuery
from quadweir.kernel.answers import Answers
from quadweir.runtime.constructing import SpelledQuad, filled_template, statement_line
from quadweir.sinks.answertext import answer_text
from quadweir.sinks.lineformat import LineFormat


def answer_lines(query: ContinuousQuery, answers: Answers, form: LineFormat) -> list[str]:
    """Return each answer as a line of text; for statements, a line for each triple.

    Lines are sorted by report instant and text, so that equal runs give equal files.

    Args:
        query: the query.
        answers: its answers.
        form: the format of the lines.
    """
    if isinstance(query.form, ConstructForm):
        graphs = list(constructed(query.form, answers))
        if form is LineFormat.ANSWERS_JSONL:
            found = [(each.t, "", each.json()) for each in graphs]
        else:
            found = [line for each in graphs for line in each.statements(form)]
        return [line for *_, line in sorted(found, key=_in_bytes)]
    signs = ["+" if sign > 0 else "-" for sign in answers.sign.tolist()]
    bound = {
        variable.name: column.to_pylist()
        for variable, column in zip(answers.variables, answers.values, strict=True)
    }
    lines = answer_text(form, answers.t.tolist(), signs, bound)
    assert lines is not None, "only triples are written in other formats"
    return lines


def sorted_lines(lines: list[str], answers: Answers) -> list[str]:
    """Return the lines of solutions by report instant, then by their bytes, as Spark sorts them."""
    pairs = zip(answers.t.tolist(), lines, strict=True)
    return [line for _, line in sorted(pairs, key=lambda each: (each[0], each[1].encode()))]


def _in_bytes(each: tuple[int, str, str]) -> tuple[int, bytes, bytes]:
    t, graph, line = each
    return t, graph.encode(), line.encode()


@final
@dataclass(frozen=True, slots=True)
class ConstructedGraph:
    """The triples of one answer of a CONSTRUCT."""

    t: int
    sign: str
    quads: tuple[SpelledQuad, ...]

    def json(self) -> str:
        """Return it as a line of JSON."""
        lines = sorted((statement_line(each) for each in self.quads), key=str.encode)
        found = {rows.REPORT: self.t, rows.SIGN: self.sign, rows.TRIPLES: lines}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    def statements(self, form: LineFormat) -> Iterator[tuple[int, str, str]]:
        """Return its statements: the instant, the graph, and the line.

        In timed lines, triples that the template puts into no graph get a common graph name, if there
        are several. It shows that they are one element.
        """
        is_timed = form is LineFormat.TIMED_LINES
        name = None
        if is_timed and len(self.quads) > 1:
            text = repr((self.t, self.sign, self.quads))
            name = f"_:a{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        for subject, predicate, end, graph in self.quads:
            quad = subject, predicate, end, graph if graph is not None else name
            line = statement_line(quad)
            yield self.t, quad[3] or "", f"{self.t} {line}" if is_timed else line


def constructed(form: ConstructForm, answers: Answers) -> Iterator[ConstructedGraph]:
    """Return the graph of each answer that has triples."""
    columns = [column.to_pylist() for column in answers.values]
    seen: Counter[str] = Counter()
    pairs = zip(answers.t.tolist(), answers.sign.tolist(), strict=True)
    for place, (t, sign) in enumerate(pairs):
        values = [column[place] for column in columns]
        bound = {
            variable: value
            for variable, value in zip(answers.variables, values, strict=True)
            if value is not None
        }
        text = repr((t, sign, values))
        # Equal solutions of one report have blank nodes of their own.
        name = hashlib.sha256(f"{seen[text]}{text}".encode()).hexdigest()[:24]
        seen[text] += 1
        quads = tuple(dict.fromkeys(filled_template(form, bound.get, name)))
        if quads:
            yield ConstructedGraph(t, "+" if sign > 0 else "-", quads)
