"""Whether a pattern needs triples to have a solution."""

from __future__ import annotations

from typing import assert_never

from quadweir.algebra.patterns import (
    Alternative,
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OneOrMore,
    OrderBy,
    Path,
    Pattern,
    Project,
    Reduced,
    Sequence,
    Slice,
    TriplePattern,
    Union,
    WindowPattern,
    ZeroOrMore,
    ZeroOrOne,
)


def needs_content(pattern: Pattern, *, inside: bool = False) -> bool:
    """Whether a pattern has no solution while all windows are empty.

    `inside` says whether it is in a window, so that its triple patterns match nothing else. An
    empty window has no named graph either (W11).
    """
    return _needs(pattern, triples=inside, graphs=inside, windows=True)


def needs_triple(pattern: Pattern) -> bool:
    """Whether a pattern has no solution while its graph is empty."""
    return _needs(pattern, triples=True, graphs=False, windows=False)


def _needs(pattern: Pattern, *, triples: bool, graphs: bool, windows: bool) -> bool:
    """Whether a match is needed: of a triple pattern, in a GRAPH, or in a WINDOW."""

    def needed(part: Pattern) -> bool:
        return _needs(part, triples=triples, graphs=graphs, windows=windows)

    match pattern:
        case BasicPattern(patterns=patterns):
            return triples and any(
                isinstance(each, TriplePattern) or not is_closure(each.path) for each in patterns
            )
        case Graph():
            return graphs
        case WindowPattern(input=source):
            return windows and _needs(source, triples=True, graphs=True, windows=True)
        case Join(inputs=inputs):
            return any(map(needed, inputs))
        case Union(inputs=inputs):
            return all(map(needed, inputs))
        case LeftJoin(left=source) | Minus(left=source):
            return needed(source)
        case (
            Filter(input=source)
            | Extend(input=source)
            | Project(input=source)
            | Distinct(input=source)
            | Reduced(input=source)
            | OrderBy(input=source)
            | Slice(input=source)
        ):
            return needed(source)
        case Group(input=source, keys=keys):
            return bool(keys) and needed(source)
        case _:
            return False


def is_closure(path: Path) -> bool:
    """Whether a path repeats or skips steps, so that its matches are pairs, not triples."""
    match path:
        case ZeroOrMore() | OneOrMore() | ZeroOrOne():
            return True
        case Inverse():
            return is_closure(path.path)
        case Sequence() | Alternative():
            return any(is_closure(each) for each in path.paths)
        case Link() | NegatedSet():
            return False
        case _:
            assert_never(path)
