"""Questions that have answers: joins over a handful of names, mild filters, data to match.

`strategies.py` covers the languages; its queries almost never match anything. Here most queries
over `make_feed` and `make_static` have answers, so that comparing two evaluations means something.

    @given(dense_questions(), feeds(), static_data())
    def test_something(question, feed, static):
        query = parse(question.text("cqels"), dialect="cqels", allow=ALLOW)
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from hypothesis import strategies as st

from properties.strategies import (
    EVERYTHING,
    GRAPHS,
    PREDICATES,
    STREAMS,
    SUBJECTS,
    Block,
    Line,
    Part,
    Question,
    Triples,
    scopes,
)
from quadweir.terms import IRI, Literal, Quad
from quadweir.testing import Element
from quadweir.vocab import XSD

Feed = list[Element]

# --- data -----------------------------------------------------------------------------------------

_NUMBERS = [Literal(number, datatype=IRI(XSD.integer)) for number in ("1", "2", "3")]


def _triple(dice: random.Random) -> Quad:
    end = IRI(dice.choice(SUBJECTS)) if dice.random() < 0.7 else dice.choice(_NUMBERS)
    return Quad(IRI(dice.choice(SUBJECTS)), IRI(dice.choice(PREDICATES)), end)


def make_feed(seed: int, *, size: int = 6, until_ms: int = 20) -> Feed:
    """Two streams of up to `size` elements of one to four triples, some at equal times.

    A third of the triples have been there before: that is where bags and graphs differ.
    """
    dice = random.Random(seed)
    found = []
    for stream in STREAMS:
        before: list[Quad] = []
        times = sorted(dice.randint(1, until_ms) for _ in range(dice.randint(2, size)))
        for position, time in enumerate(times):
            quads = tuple(
                dice.choice(before) if before and dice.random() < 0.35 else _triple(dice)
                for _ in range(dice.randint(1, 4))
            )
            before += quads
            found.append(Element(stream, time, position, quads))
    return found


def make_static(seed: int, *, size: int = 20) -> list[Quad]:
    """A default graph, and the named graphs that queries ask for; none of them is empty."""
    dice = random.Random(seed)
    default = [_triple(dice) for _ in range(dice.randint(size // 2, size))]
    named = [
        replace(_triple(dice), graph=IRI(graph))
        for graph in GRAPHS
        for _ in range(dice.randint(2, size // 2))
    ]
    return default + named


def feeds() -> st.SearchStrategy[Feed]:
    return st.integers(0, 2**32).map(make_feed)


def static_data() -> st.SearchStrategy[list[Quad]]:
    return st.integers(0, 2**32).map(make_static)


@st.composite
def arrivals(draw: st.DrawFn, feed: Feed, delay_ms: int, *, late: bool = True) -> Feed:
    """An order of arrival: most elements are held up by less than the delay, some by far more.

    Of those some are `late`; the oracle says which.
    """
    held_up = in_time = st.integers(0, max(0, delay_ms - 1))
    if late and draw(st.booleans()):
        held_up = in_time | st.integers(delay_ms, delay_ms + 20)
    late_by = draw(st.lists(held_up, min_size=len(feed), max_size=len(feed)))
    pairs = sorted(zip(feed, late_by, strict=True), key=lambda pair: pair[0].event_time + pair[1])
    return [element for element, _ in pairs]


# --- questions ------------------------------------------------------------------------------------

_TESTS = [
    "?a != ?b",
    "BOUND(?c)",
    "!BOUND(?c)",
    "isIRI(?b)",
    "?b > 1",
    "?b < 3 || isIRI(?b)",
    "?c NOT IN (:s0, 2)",
    "COALESCE(?d, ?b) != :s1",
    "STR(?a) < STR(?b) && ?a != :s3",
    "IF(isNumeric(?b), ?b - 1 > 0, true)",
]
# Only where times are asked for: an engine may refuse them.
_TIME_TESTS = ["timestamp(?a, :p0, ?b) > 8", "!(timestamp(?a, :p1, ?c) < 12)"]
_TIME_BINDS = ["timestamp(?a, :p0, ?b)", "timestamp(?b, :p1, :s1)"]
_VALUES = [
    "VALUES ?a { :s0 :s1 :s2 }",
    "VALUES (?a ?b) { (:s0 UNDEF) (UNDEF :s1) (:s2 2) }",
    "VALUES ?c { :s0 1 UNDEF }",
]
_BINDS = ["STR(?a)", "?b + 1", "COALESCE(?c, ?a)", "IF(?a = ?b, 1, 0)", "1 / (?b - 1)", "?d"]
_CUTS = ["LIMIT 2", "ORDER BY DESC(?b) LIMIT 2", "ORDER BY ?a OFFSET 1", "LIMIT 1 OFFSET 1"]
_PATHS = [":p0/:p1", ":p0|:p1", "^:p0", ":p0+", ":p1*", ":p2?", "!(:p0|^:p1)", "(:p0|^:p1)+"]


@st.composite
def _triples(draw: st.DrawFn, kinds: Collection[str], windows: int, first: bool) -> Triples:
    lines = []
    for number in range(draw(st.integers(1, 2))):
        subject = "?a" if first and not number else draw(st.sampled_from(["?a", "?b", "?b", ":s0"]))
        verbs = [":p0", ":p0", ":p1", ":p2", "?v"]
        if "path" in kinds:
            verbs = [*_PATHS, ":p0"]
        end = draw(st.sampled_from(["?b", "?b", "?c", "?d", ":s1", "2"]))
        end = "?b" if first and not number else end
        lines.append(f"{subject} {draw(st.sampled_from(verbs))} {end}")
    window = draw(st.sampled_from([*range(windows), *range(windows), None])) if windows else None
    if windows == 1:
        window = 0
    return Triples(tuple(lines), window)


@st.composite
def _group(
    draw: st.DrawFn, kinds: Collection[str], windows: int, depth: int, fresh: list[int]
) -> tuple[Part, ...]:
    parts: list[Part] = [draw(_triples(kinds, windows, True))]
    choices = [kind for kind in sorted(kinds) if kind in ("filter", "bind", "values")]
    if depth:
        nested = ("optional", "union", "minus", "exists", "subselect", "graph")
        choices += [kind for kind in sorted(kinds) if kind in nested] * 2
    for kind in draw(st.lists(st.sampled_from(choices), max_size=2)) if choices else ():
        inner = _group(kinds, windows, depth - 1, fresh)
        match kind:
            case "filter":
                tests = _TESTS + (_TIME_TESTS * 2 if "times" in kinds else [])
                parts.append(Line(f"FILTER({draw(st.sampled_from(tests))})"))
            case "bind":
                fresh[0] += 1
                values = _BINDS + (_TIME_BINDS * 2 if "times" in kinds else [])
                parts.append(Line(f"BIND({draw(st.sampled_from(values))} AS ?n{fresh[0]})"))
            case "values":
                parts.append(Line(draw(st.sampled_from(_VALUES))))
            case "optional" | "minus":
                # Something to tell the right side from the left: else MINUS leaves nothing.
                parts.append(Block(kind.upper(), ((draw(_triples(kinds, windows, False)),),)))
            case "exists":
                word = draw(st.sampled_from(["FILTER EXISTS", "FILTER NOT EXISTS"]))
                parts.append(Block(word, ((draw(_triples(kinds, windows, False)),),)))
            case "union":
                parts.append(Block("UNION", (draw(inner), draw(inner))))
            case "graph":
                name = draw(st.sampled_from([f"<{GRAPHS[0]}>", "?g"]))
                inside = draw(_triples(kinds, 0, False))
                parts.append(Block(f"GRAPH {name}", ((inside,),)))
            case "subselect":
                word = draw(
                    st.sampled_from(
                        [
                            "SELECT ?a",
                            "SELECT DISTINCT ?a ?b",
                            "SELECT ?b",
                            "SELECT (COUNT(*) AS ?k) (MAX(?a) AS ?m)",
                        ]
                    )
                )
                if "COUNT" in word:
                    fresh[0] += 1
                    word = word.replace("?k", f"?k{fresh[0]}").replace("?m)", f"?m{fresh[0]})")
                cut = draw(st.sampled_from(["", *_CUTS])) if "slice" in kinds else ""
                parts.append(Block(word, (draw(inner),), cut))
    if draw(st.integers(0, 3)) == 0 and not isinstance(parts[-1], Triples | Line):
        parts.append(draw(_triples(kinds, windows, False)))
    return tuple(parts)


_HEADS = [
    ("SELECT ?a ?b ?c", ""),
    ("SELECT ?a ?n1", ""),
    ("SELECT DISTINCT ?a ?c", ""),
    ("SELECT ?b (COUNT(*) AS ?n)", "GROUP BY ?b"),
    ("SELECT ?a (SUM(?b) AS ?n) (MIN(?c) AS ?m)", "GROUP BY ?a"),
    ("SELECT ?a (COUNT(DISTINCT ?b) AS ?n)", "GROUP BY ?a HAVING (COUNT(*) > 1)"),
    ("SELECT (COUNT(*) AS ?n) (AVG(?b) AS ?m)", ""),
]
_SLICES = [
    ("SELECT ?a ?b", "ORDER BY DESC(?b) LIMIT 2"),
    ("SELECT ?a ?b ?c", "LIMIT 3 OFFSET 1"),
    ("SELECT DISTINCT ?b", "ORDER BY ?b LIMIT 2"),
    ("SELECT ?b ?a", "LIMIT 2"),
    ("SELECT ?a ?c", "ORDER BY ?c OFFSET 2"),
    ("SELECT DISTINCT ?c ?a", "ORDER BY DESC(?b) ?c LIMIT 2 OFFSET 1"),
    ("SELECT ?a", "ORDER BY ?b ?a"),
    ("SELECT ?b (COUNT(*) AS ?n)", "GROUP BY ?b ORDER BY ?n LIMIT 2"),
]


@st.composite
def dense_questions(
    draw: st.DrawFn,
    dialect: str = "common",
    *,
    kinds: Collection[str] = EVERYTHING,
    min_windows: int = 1,
    max_windows: int = 2,
    aggregates: bool = True,
    slices: bool = False,
    depth: int = 1,
) -> Question:
    """A question whose windows `dialect` can write; most of them have answers."""
    kinds = {*kinds, "slice"} if slices else kinds
    windows = draw(st.integers(min_windows, max_windows))
    parts = draw(_group(kinds, windows, depth, [0]))
    heads = _HEADS[: None if aggregates else 3] + (_SLICES if slices else [])
    head, tail = draw(st.sampled_from(heads))
    return Question(
        head=head,
        tail=tail,
        parts=parts,
        scopes=tuple(draw(scopes(dialect)) for _ in range(windows)),
        streams=tuple(STREAMS[number % len(STREAMS)] for number in range(windows)),
        graphs=tuple(GRAPHS) if "graph" in kinds else (),
        # Streams and static data have triples in common: in a graph they are there once (W8).
        merged=(GRAPHS[0],) if dialect == "csparql" and draw(st.booleans()) else (),
    )
