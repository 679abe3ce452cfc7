"""What to say of patterns that matched nothing, and of empty streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import final

from quadweir.algebra.patterns import Pattern, TriplePattern
from quadweir.algebra.traverse import walk
from quadweir.plan.query import QueryPlan
from quadweir.terms import IRI, Variable


@final
@dataclass(frozen=True, slots=True)
class AskedPattern:
    """A pattern over a stream, and the tests that find what matches it.

    Attributes:
        stream: the stream.
        text: the end of a sentence that says what a statement has to match.
        pattern: the pattern.
        tests: the numbers of the tests.
    """

    stream: str
    text: str
    pattern: TriplePattern
    tests: tuple[int, ...]


def asked_patterns(plan: QueryPlan) -> list[AskedPattern]:
    """Return the patterns over streams, each once."""
    found: dict[tuple[str, str], tuple[TriplePattern, list[int]]] = {}
    for at, test in enumerate(plan.wanted):
        for number, _ in test.leaves:
            leaf = plan.matches[number]
            if leaf.pattern is not None:
                key = leaf.source.stream, _wanted(leaf.pattern, leaf.graph)
                found.setdefault(key, (leaf.pattern, []))[1].append(at)
    return [
        AskedPattern(stream, text, pattern, tuple(tests))
        for (stream, text), (pattern, tests) in found.items()
    ]


def unmatched_patterns(
    patterns: Iterable[AskedPattern],
    empty: Collection[str],
    is_matched: Callable[[AskedPattern], bool],
) -> list[str]:
    """Return sentences about empty streams, and about patterns that no statement matches."""
    said = [f"<{each}> has no statements" for each in sorted(empty)]
    for each in patterns:
        if each.stream not in empty and not is_matched(each):
            said.append(f"no statement of <{each.stream}> {each.text}{_place(each.pattern)}")
    return said


def unmatched_in_static(patterns: Iterable[Pattern]) -> list[str]:
    """Return sentences about the patterns that no static data matches."""
    said = []
    for pattern in patterns:
        triples = [each for each in walk(pattern) if isinstance(each, TriplePattern)]
        if triples:
            text = " . ".join(map(_text, triples))
            said.append(f"no static data matches {text}{_place(triples[0])}")
    return said


def _wanted(pattern: TriplePattern, graph: IRI | Variable | None) -> str:
    if graph is None:
        return f"matches {_text(pattern)}"
    if pattern.span is not None:
        return f"matches GRAPH {graph} {{ {_text(pattern)} }}"
    return f"is in the graph {graph}" if isinstance(graph, IRI) else "is in a named graph"


def _text(pattern: TriplePattern) -> str:
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _place(pattern: TriplePattern) -> str:
    span = pattern.span
    return f" (line {span.line}, column {span.column})" if span is not None else ""
