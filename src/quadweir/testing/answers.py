"""Answers of a continuous query, how they are compared, and how a difference is shown."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final, final

from quadweir.terms import (
    IRI,
    BlankNode,
    Literal,
    Quad,
    Term,
    TripleTerm,
    relabelled_term,
    triple_of,
)
from quadweir.vocab import XSD

_INTEGERS: Final = frozenset(
    XSD[sign + size]
    for sign, size in (
        *(("", name) for name in ("integer", "long", "int", "short", "byte")),
        *(("unsigned", name) for name in ("Long", "Int", "Short", "Byte")),
        *((name, "Integer") for name in ("nonPositive", "negative", "nonNegative", "positive")),
    )
)
_FRACTION: Final = re.compile(
    r"(?P<whole>-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)?"
)
_FLOATS: Final = frozenset((XSD.double, XSD.float))


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its report instant, + or -, and a solution (A3) or, for CONSTRUCT, a graph (A5).

    The answer to an ASK is a solution that binds `boolean`.

    >>> print(Answer.of(1000, "+", {"x": IRI("urn:a")}))
    1000 + ?x = <urn:a>
    """

    t: int
    sign: str
    solution: tuple[tuple[str, Term], ...] = ()
    graph: frozenset[Quad] | None = None

    @classmethod
    def of(cls, t: int, sign: str, solution: Mapping[str, Term]) -> Answer:
        """Make an answer from bindings in any order; unbound variables are left out."""
        return cls(t, sign, tuple(sorted(solution.items(), key=lambda pair: pair[0])))

    @property
    def bindings(self) -> dict[str, Term]:
        return dict(self.solution)

    def __str__(self) -> str:
        if self.graph is not None:
            inside = " ".join(sorted(map(str, self.graph)))
            return f"{self.t} {self.sign} {{ {inside} }}"
        inside = ", ".join(f"?{name} = {term}" for name, term in self.solution)
        return f"{self.t} {self.sign} {inside or '(the empty solution)'}"

    def to_json(self) -> dict[str, Any]:
        """The answer as one line of the `jsonl` format says it.

        >>> Answer.of(5, "+", {"n": Literal("1", datatype=IRI(XSD.integer))}).to_json()["bindings"]
        {'n': {'type': 'literal', 'value': '1', 'datatype': 'http://www.w3.org/2001/XMLSchema#integer'}}
        """
        row: dict[str, Any] = {"t": self.t, "sign": self.sign}
        if self.graph is not None:
            row["graph"] = sorted(map(str, self.graph))
        else:
            row["bindings"] = {name: term_to_json(term) for name, term in self.solution}
        return row


def term_to_json(term: Term) -> dict[str, Any]:
    """Write a term as SPARQL's JSON result format does.

    Spec: https://www.w3.org/TR/sparql11-results-json/#select-encode-terms
    """
    match term:
        case IRI():
            return {"type": "uri", "value": term.value}
        case BlankNode():
            return {"type": "bnode", "value": term.label}
        case Literal():
            written = {"type": "literal", "value": term.lexical}
            if term.language is not None:
                written["xml:lang"] = term.language
            elif term.datatype.value != XSD.string:
                written["datatype"] = term.datatype.value
            return written
        case TripleTerm():
            parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
            value = {name: term_to_json(part) for name, part in parts.items()}
            return {"type": "triple", "value": value}


def answers_from_json(lines: Iterable[str]) -> list[Answer]:
    """Read answers back from `jsonl` lines of solutions."""
    found = []
    for line in lines:
        row = json.loads(line)
        solution = {name: _term_from_json(value) for name, value in row["bindings"].items()}
        found.append(Answer.of(row["t"], row["sign"], solution))
    return found


_PARTS: Final = ("subject", "predicate", "object")


def _term_from_json(value: Mapping[str, Any]) -> Term:
    match value["type"]:
        case "uri":
            return IRI(value["value"])
        case "bnode":
            return BlankNode(value["value"])
        case "triple":
            parts = [_term_from_json(value["value"][name]) for name in _PARTS]
            made = triple_of(parts[0], parts[1], parts[2])
            assert made is not None
            return made
        case _:
            if "xml:lang" in value:
                return Literal(value["value"], language=value["xml:lang"])
            return Literal(value["value"], datatype=IRI(value.get("datatype", XSD.string)))


# --- comparing --------------------------------------------------------------------------------


def canonical_term(term: Term) -> Term:
    """The one spelling of a number or time that stands for all its spellings.

    Another engine may spell 1.50 and 1.5, or add doubles in another order; neither is a different
    answer. Doubles keep 12 digits. Other terms stay as they are.

    >>> str(canonical_term(Literal("+1.50", datatype=IRI(XSD.decimal))))
    '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    if not isinstance(term, Literal):
        return term
    kind, lexical = term.datatype.value, term.lexical.strip()
    try:
        if kind in _INTEGERS:
            return Literal(str(int(lexical)), datatype=term.datatype)
        if kind == XSD.decimal:
            # Divisions that do not end are cut at different digits by different evaluators.
            value = round(Decimal(lexical), 12).normalize()
            return Literal(f"{value + 0:f}", datatype=term.datatype)
        if kind in _FLOATS:
            number = float(lexical.replace("INF", "inf"))
            spelt = repr(float(f"{number:.12g}")) if math.isfinite(number) else str(number)
            return Literal(spelt, datatype=term.datatype)
        if kind == XSD.dateTime and (match := _FRACTION.fullmatch(lexical)):
            fraction = (match["fraction"] or "").rstrip("0").rstrip(".")
            zone = "Z" if match["zone"] in ("+00:00", "-00:00") else match["zone"] or ""
            return Literal(match["whole"] + fraction + zone, datatype=term.datatype)
    except (ValueError, InvalidOperation):
        return term
    return term


def canonical_answer(answer: Answer) -> Answer:
    """Spell an answer's numbers and times canonically, to compare it with another engine's."""
    solution = tuple((name, canonical_term(term)) for name, term in answer.solution)
    graph = None
    if answer.graph is not None:
        graph = frozenset(replace(q, object=canonical_term(q.object)) for q in answer.graph)
    return _without_labels(Answer(answer.t, answer.sign, solution, graph), anonymous=False)


def _without_labels(answer: Answer, *, anonymous: bool) -> Answer:
    """Give all blank nodes one label: those of graphs, and with `anonymous` those of solutions.

    The blank nodes of a template are new each time, so their labels never mean anything.
    """
    solution = answer.solution
    if anonymous:
        solution = tuple((name, _unlabelled(term)) for name, term in solution)
    graph = answer.graph
    if graph is not None:
        graph = frozenset(quad.relabelled(lambda _: "any") for quad in graph)
    return Answer(answer.t, answer.sign, solution, graph)


def _unlabelled(term: Term) -> Term:
    return relabelled_term(term, lambda _: "any")


def multiset(answers: Iterable[Answer], *, anonymous: bool = False) -> Counter[Answer]:
    """Count answers that have the same terms; with `anonymous`, all blank nodes are one.

    Without `anonymous`, blank nodes are compared by label, which suits two evaluators that keep
    the labels of the streams.
    """
    return Counter(_without_labels(answer, anonymous=anonymous) for answer in answers)


def same_answers(
    one: Iterable[Answer], other: Iterable[Answer], *, anonymous: bool = False
) -> bool:
    """Whether two runs gave the same multiset of (t, sign, solution)."""
    return multiset(one, anonymous=anonymous) == multiset(other, anonymous=anonymous)


def diff_answers(
    expected: Iterable[Answer],
    actual: Iterable[Answer],
    *,
    anonymous: bool = False,
    most: int = 20,
) -> str:
    """The differences of two runs in words; the empty string if they agree.

    >>> one = [Answer.of(5, "+", {"x": IRI("urn:a")})]
    >>> print(diff_answers(one * 2, one))
    1 expected answer missing, 0 unexpected
      missing    1 x  5 + ?x = <urn:a>
    """
    wanted = multiset(expected, anonymous=anonymous)
    found = multiset(actual, anonymous=anonymous)
    if wanted == found:
        return ""
    missing, extra = wanted - found, found - wanted
    counts = missing.total(), extra.total()
    plural = "" if counts[0] == 1 else "s"
    lines = [f"{counts[0]} expected answer{plural} missing, {counts[1]} unexpected"]
    rows = [("missing", answer, count) for answer, count in missing.items()]
    rows += [("unexpected", answer, count) for answer, count in extra.items()]
    rows.sort(key=lambda row: (row[1].t, str(row[1]), row[0]))
    lines += [f"  {kind:<10} {count} x  {answer}" for kind, answer, count in rows[:most]]
    if len(rows) > most:
        lines.append(f"  and {len(rows) - most} more kinds of answers that differ")
    return "\n".join(lines)
