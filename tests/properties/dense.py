"""Generated questions that have answers: joins over a few names, mild filters, matching data.

`strategies.py` covers the languages; its queries almost never match anything. Here most queries
over `make_feed` and `make_static` have answers, so that comparing two evaluations means something.

    @given(dense_questions(), feeds(), static_data())
    def test_something(question, feed, static):
        query = parse(question.text("cqels"), dialect="cqels", allow=ALLOW)
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from odd_numbers import ODD_NUMBERS
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
    some_graphs,
)
from quadweir.algebra.windows import TimeScope
from quadweir.terms import IRI, BlankNode, Literal, Quad
from quadweir.testing import Element
from quadweir.vocab import XSD

Feed = list[Element]

# --- data -----------------------------------------------------------------------------------------

_NUMBERS = [Literal(number, datatype=IRI(XSD.integer)) for number in ("1", "2", "3")]
# Equal values in different spellings: not the same term, so no join and no group takes them as one.
_SPELLINGS = [
    *_NUMBERS,
    *(
        Literal(spelling, datatype=IRI(XSD[kind]))
        for kind, spelling in (
            ("integer", "01"),
            ("int", "1"),
            ("decimal", "1.0"),
            ("decimal", "1.00"),
            ("double", "1e0"),
            ("double", "1.0E0"),
            ("boolean", "1"),
            ("boolean", "true"),
            ("dateTime", "2024-01-01T00:00:00Z"),
            ("dateTime", "2024-01-01T00:00:00.0Z"),
            ("date", "2024-01-01"),
            ("date", "2024-01-01Z"),
            ("integer", "one"),
        )
    ),
    Literal("1"),
    Literal("1", language="en"),
    Literal("1", datatype=IRI("urn:unknown")),
]
# Most data has small integers only, so that joins find partners more often.
_LITERALS = [_NUMBERS, _NUMBERS, _NUMBERS, _SPELLINGS, [*_NUMBERS, *ODD_NUMBERS]]


def _triple(dice: random.Random, literals: list[Literal], names: int = len(SUBJECTS)) -> Quad:
    some = SUBJECTS[:names]
    end = IRI(dice.choice(some)) if dice.random() < 0.7 else dice.choice(literals)
    return Quad(IRI(dice.choice(some)), IRI(dice.choice(PREDICATES)), end)


def make_feed(seed: int, *, size: int = 6, until_ms: int = 20, names: int = len(SUBJECTS)) -> Feed:
    """Two streams of up to `size` elements of one to four triples, some at equal times.

    A third of the triples have been there before: that is where bags and graphs differ. The fewer
    names, the more triples meet. Some elements name a graph, some several, some none.
    """
    dice = random.Random(seed)
    literals = dice.choice(_LITERALS)
    found = []
    for stream in STREAMS:
        before: list[Quad] = []
        times = sorted(dice.randint(1, until_ms) for _ in range(dice.randint(2, size)))
        for position, time in enumerate(times):
            quads = tuple(
                dice.choice(before)
                if before and dice.random() < 0.35
                else _triple(dice, literals, names)
                for _ in range(dice.randint(1, 4))
            )
            before += quads
            quads = tuple(replace(quad, graph=name) for quad, name in _named(dice, quads))
            found.append(Element(stream, time, position, quads))
    return found


_NAMES: list[IRI | BlankNode | None] = [
    None,
    IRI(GRAPHS[0]),
    IRI(GRAPHS[1]),
    IRI(SUBJECTS[0]),
    BlankNode("g"),
]


def _named(
    dice: random.Random, quads: tuple[Quad, ...]
) -> Iterator[tuple[Quad, IRI | BlankNode | None]]:
    """Choose the graph of each quad: the same for all of an element, or one for each."""
    name = dice.choice(_NAMES)
    is_one = dice.random() < 0.6
    for quad in quads:
        yield quad, name if is_one else dice.choice(_NAMES)
        if not is_one and dice.random() < 0.2:
            yield quad, dice.choice(_NAMES)


def make_static(seed: int, *, size: int = 20) -> list[Quad]:
    """A default graph, and the named graphs that queries ask for; none of them is empty."""
    dice = random.Random(seed)
    literals = dice.choice(_LITERALS)
    default = [_triple(dice, literals) for _ in range(dice.randint(size // 2, size))]
    named = [
        replace(_triple(dice, literals), graph=IRI(graph))
        for graph in GRAPHS
        for _ in range(dice.randint(2, size // 2))
    ]
    return default + named


def feeds(*, names: int = len(SUBJECTS)) -> st.SearchStrategy[Feed]:
    return st.integers(0, 2**32).map(lambda seed: make_feed(seed, names=names))


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
    "?b = 1",
    "?b != ?d",
    "?b <= ?c",
    "?b",
    "?b < 3 || isIRI(?b)",
    "?c NOT IN (:s0, 2)",
    "COALESCE(?d, ?b) != :s1",
    "STR(?a) < STR(?b) && ?a != :s3",
    "IF(isNumeric(?b), ?b - 1 > 0, true)",
]
# Only if the test asks for times: an engine may refuse them.
_TIME_TESTS = ["timestamp(?a, :p0, ?b) > 8", "!(timestamp(?a, :p1, ?c) < 12)"]
_TIME_BINDS = ["timestamp(?a, :p0, ?b)", "timestamp(?b, :p1, :s1)"]
_VALUES = [
    "VALUES ?a { :s0 :s1 :s2 }",
    "VALUES (?a ?b) { (:s0 UNDEF) (UNDEF :s1) (:s2 2) }",
    "VALUES ?c { :s0 1 UNDEF }",
]
_BINDS = [
    "STR(?b)",
    "-?b",
    "?b * ?d",
    "IF(?b = 1, ?b, STR(?c))",
    "STR(?a)",
    "?b + 1",
    "COALESCE(?c, ?a)",
    "IF(?a = ?b, 1, 0)",
    "1 / (?b - 1)",
    "?d",
]
_CUTS = ["LIMIT 2", "ORDER BY DESC(?b) LIMIT 2", "ORDER BY ?a OFFSET 1", "LIMIT 1 OFFSET 1"]
_PATHS = [":p0/:p1", ":p0|:p1", "^:p0", ":p0+", ":p1*", ":p2?", "!(:p0|^:p1)", "(:p0|^:p1)+"]


# The patterns inside GRAPH in a window, with the generated triples.
_INSIDE = [
    "",
    "{0} OPTIONAL {{ ?a :p1 ?c }}",
    "{0} OPTIONAL {{ ?g :p1 ?c }}",
    "{0} MINUS {{ ?a :p1 ?d }}",
    "{0} MINUS {{ ?x :p1 ?y }}",
    "?a :p0 ?b OPTIONAL {{ ?a :p1 ?c }} MINUS {{ ?c :p2 ?d }}",
    "{0} FILTER EXISTS {{ ?b :p1 ?e }}",
    "{0} FILTER NOT EXISTS {{ ?a :p1 ?e }}",
    "{0} FILTER(?g != :s0)",
    "{0} FILTER(isIRI(?b))",
    "{0} BIND(COALESCE(?g, ?a) AS ?i1)",
    "{0} BIND(STR(?a) AS ?i2)",
    "{{ SELECT ?a (COUNT(*) AS ?i3) {{ {0} }} GROUP BY ?a }}",
    "{{ SELECT (COUNT(*) AS ?i4) {{ {0} }} }}",
    "{{ SELECT DISTINCT ?a {{ {0} }} }}",
    "{{ SELECT ?b {{ {0} }} ORDER BY ?b LIMIT 1 }}",
    "OPTIONAL {{ {0} }}",
    "{{ {0} }} UNION {{ ?a :p2 ?c }}",
    "{{ {0} }} UNION {{ VALUES ?a {{ :s0 :s1 }} }}",
    "VALUES ?a {{ :s0 :s1 }}",
    "VALUES ?g {{ :s0 :g0 }} {0}",
    "{0} GRAPH ?h {{ ?a :p0 ?d }}",
    "{0} GRAPH :g1 {{ ?a ?v ?d }}",
    "GRAPH ?h {{ ?a :p0 ?d }}",
    "?g :p0 ?b",
    "{0} . ?g ?v ?c",
]
_PATHS_INSIDE = ["?a :p0+ ?b", "{0} . ?b (:p0|:p1)+ ?c"]


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
    if window is None or "named" not in kinds or draw(st.integers(0, 2)):
        return Triples(tuple(lines), window)
    graph = draw(st.sampled_from(["?g", "?g", "?g", "?a", f"<{GRAPHS[0]}>", ":s0"]))
    if draw(st.booleans()):
        return Triples(tuple(lines), window, graph)
    inside = draw(st.sampled_from(_INSIDE + (_PATHS_INSIDE if "path" in kinds else [])))
    return Triples(tuple(lines), window, graph, inside)


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
                # The right side must differ from the left side; otherwise MINUS leaves nothing.
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


DISTINCT_ALL = [
    ("SELECT ?a (COUNT(DISTINCT *) AS ?n)", "GROUP BY ?a"),
    ("SELECT (COUNT(DISTINCT *) AS ?n)", ""),
    ("SELECT ?b (COUNT(DISTINCT *) AS ?n) (COUNT(?c) AS ?m)", "GROUP BY ?b"),
]
_HEADS = [
    ("SELECT ?a ?b ?c", ""),
    ("SELECT ?a ?n1", ""),
    ("SELECT DISTINCT ?a ?c", ""),
    ("SELECT ?b (COUNT(*) AS ?n)", "GROUP BY ?b"),
    ("SELECT ?a (SUM(?b) AS ?n) (MIN(?c) AS ?m)", "GROUP BY ?a"),
    ("SELECT ?a (COUNT(DISTINCT ?b) AS ?n)", "GROUP BY ?a HAVING (COUNT(*) > 1)"),
    ("SELECT (COUNT(*) AS ?n) (AVG(?b) AS ?m)", ""),
    *DISTINCT_ALL,
    ("SELECT ?a (SUM(?b) AS ?n) (COUNT(1 / (?b - 1)) AS ?m)", "GROUP BY ?a"),
    ("SELECT (MIN(?b) AS ?n) (MAX(?b) AS ?m) (SAMPLE(?c) AS ?o)", ""),
    ("SELECT ?a (GROUP_CONCAT(?b) AS ?n) (COUNT(?c) AS ?m)", "GROUP BY ?a"),
]
_GRAPH_HEADS = [
    ("SELECT ?a ?b ?g ?h", ""),
    ("SELECT DISTINCT ?g ?i1 ?i2 ?i3 ?i4", ""),
    ("SELECT ?g (COUNT(*) AS ?n) (COUNT(DISTINCT ?a) AS ?m)", "GROUP BY ?g"),
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
    heads: Sequence[tuple[str, str]] = (),
    one_stream: bool | None = None,
) -> Question:
    """A question whose windows `dialect` can write; most of them have answers.

    `heads` are what may be selected, with the modifiers. Windows may be over `one_stream`.
    """
    kinds = {*kinds, "slice"} if slices else kinds
    windows = draw(st.integers(min_windows, max_windows))
    parts = draw(_group(kinds, windows, depth, [0]))
    if not heads:
        heads = _HEADS[: None if aggregates else 3] + (_SLICES if slices else [])
        heads += _GRAPH_HEADS[: None if aggregates else 2] if "named" in kinds else []
    head, tail = draw(st.sampled_from(heads))
    streams = tuple(STREAMS[number % len(STREAMS)] for number in range(windows))
    if one_stream is None:
        # CQELS-QL sees one window where stream and scope are the same.
        one_stream = dialect in ("rspql", "csparql") and draw(st.integers(0, 3)) == 0
    if one_stream:
        streams = (STREAMS[0],) * windows
    return Question(
        head=head,
        tail=tail,
        parts=parts,
        scopes=tuple(draw(scopes(dialect)) for _ in range(windows)),
        streams=streams,
        graphs=draw(st.just(tuple(GRAPHS)) | some_graphs) if "graph" in kinds else (),
        # Streams and static data have triples in common: in a graph they are there once (W8).
        default=draw(st.just(()) | some_graphs),
    )


# Rows that a negation removes for a while and gives back, and their partners in a join.
_RIGHT = ["OPTIONAL", "MINUS", "FILTER NOT EXISTS", "FILTER EXISTS"]


@st.composite
def flickering_questions(draw: st.DrawFn) -> Question:
    """Joins over rows that go and come back, often several times within a step.

    The left window is long and the right one short, so that what the right side takes away comes
    back while its parts are still there. Patterns of one predicate over few names meet often.
    """
    joined = Triples((draw(st.sampled_from(["?a :p1 ?d", "?b :p1 ?d", "?a :p1 ?c"])),), 0)
    left = Triples(("?a :p0 ?b",), 0)
    right = Triples((draw(st.sampled_from(["?a :p2 ?c", "?b :p2 ?c", "?a :p0 ?c"])),), 1)
    taken_away = Block(draw(st.sampled_from(_RIGHT)), ((right,),))
    parts = draw(
        st.sampled_from(
            [
                (left, taken_away, joined),
                (left, taken_away, Block("OPTIONAL", ((joined,),))),
                (left, taken_away, Block("MINUS", ((joined,),))),
                (left, Block("OPTIONAL", ((joined,),)), taken_away, joined),
                (joined, Block("SELECT DISTINCT ?a ?b", ((left, taken_away),))),
            ]
        )
    )
    lengths = draw(st.sampled_from([(10, 3), (10, 1), (12, 4), (5, 2)]))
    return Question(
        head="SELECT ?a ?b ?c ?d",
        tail="",
        parts=parts,
        scopes=tuple(TimeScope(range_ms=length) for length in lengths),
        streams=tuple(STREAMS),
    )
