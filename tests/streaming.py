"""Small queries and streams for tests of meaning, built without a parser.

A term is written in a word: `?x` is a variable, a number an integer, anything else an IRI `urn:word`.
"""

from __future__ import annotations

from quadweir.algebra.patterns import (
    BasicPattern,
    Join,
    Pattern,
    Project,
    TriplePattern,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.scopes import in_scope, visible
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.windows import Content, Scope, TimeScope, Window
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode, Literal, Quad, Variable
from quadweir.testing import Answer, Oracle, OracleRun
from quadweir.vocab import XSD

BAG, GRAPH = Content.BAG, Content.GRAPH
ISTREAM, RSTREAM, DSTREAM = (
    OutputOperator.ISTREAM,
    OutputOperator.RSTREAM,
    OutputOperator.DSTREAM,
)
CHANGE = Report(policy=ReportPolicy.ON_CHANGE)
CLOSE = Report(policy=ReportPolicy.ON_CLOSE)
CLOSE_NON_EMPTY = Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True)


def term(word: str) -> IRI | Literal | BlankNode | Variable:
    if word.startswith("?"):
        return Variable(word[1:])
    if word.startswith("_:"):
        return BlankNode(word[2:])
    if word.lstrip("-").isdigit():
        return Literal(word, datatype=IRI(XSD.integer))
    if word.startswith('"'):
        return Literal(word.strip('"'))
    return IRI(f"urn:{word}")


def triples(text: str) -> BasicPattern:
    """Read `?x p ?y . ?y q 1` as a basic pattern."""
    found = []
    for part in filter(None, (each.split() for each in text.split(" . "))):
        subject, predicate, end = map(term, part)
        found.append(TriplePattern(subject=subject, predicate=predicate, object=end))
    return BasicPattern(patterns=tuple(found))


def quads(text: str, graph: str | None = None) -> tuple[Quad, ...]:
    """Read `a p b . b q 1` as quads."""
    name = None if graph is None else IRI(f"urn:{graph}")
    parts = filter(None, (each.split() for each in text.split(" . ")))
    return tuple(Quad(*map(term, part), name) for part in parts)


def stream(*elements: tuple[int, str], name: str = "s") -> list[Element]:
    """Make the elements of a stream from times and triples; positions count from 0."""
    return [
        Element(f"urn:{name}", time, position, quads(text))
        for position, (time, text) in enumerate(elements)
    ]


def window(
    scope: Scope, content: Content = BAG, *, name: str = "w", over: str = "s", at: str | None = None
) -> Window:
    return Window(
        name=IRI(f"urn:{name}"),
        stream=term(over),
        scope=scope,
        content=content,
        event_time=None if at is None else IRI(f"urn:{at}"),
    )


def inside(text: str | Pattern, name: str = "w") -> WindowPattern:
    pattern = triples(text) if isinstance(text, str) else text
    return WindowPattern(window=term(name), input=pattern)


def query(
    pattern: Pattern,
    *windows: Window,
    report: Report = CHANGE,
    output: OutputOperator = RSTREAM,
    select: str | None = None,
    every_ms: int | None = None,
    **more: object,
) -> ContinuousQuery:
    """Make a SELECT query of these variables, or of all that the pattern may bind."""
    bare = ContinuousQuery(form=SelectForm(variables=()), pattern=pattern, windows=windows)
    names = (
        visible(in_scope(pattern, bare))
        if select is None
        else tuple(Variable(name) for name in select.split())
    )
    if not isinstance(pattern, Project) and type(pattern).__name__ not in ("Slice", "Distinct"):
        pattern = Project(input=pattern, variables=names)
    return ContinuousQuery(
        form=SelectForm(variables=names),
        pattern=pattern,
        windows=windows,
        report=report,
        output=output,
        tick=Tick(every_ms=every_ms),
        **more,  # type: ignore[arg-type]
    )


def join(*patterns: Pattern) -> Join:
    return Join(inputs=patterns)


def seconds(size: int, step: int | None = None) -> TimeScope:
    """A time window in milliseconds, short for tests that count in small numbers."""
    return TimeScope(range_ms=size, step_ms=step)


def short(answer: Answer) -> tuple[int, str, dict[str, str]]:
    """Say an answer in plain words: IRIs without `urn:`, literals by their text."""
    words = {
        name: value.value.removeprefix("urn:")
        if isinstance(value, IRI)
        else value.lexical
        if isinstance(value, Literal)
        else str(value)
        for name, value in answer.solution
    }
    return answer.t, answer.sign, words


def run(asked: ContinuousQuery, feed: list[Element], **options: object) -> OracleRun:
    return Oracle(asked, **options).run(feed)  # type: ignore[arg-type]


def values(asked: ContinuousQuery, feed: list[Element], **options: object) -> list[tuple[int, str]]:
    """Give (t, the values in order of variable) for each answer."""
    return [
        (t, " ".join(words.values()))
        for t, _, words in map(short, run(asked, feed, **options).answers)
    ]
