"""Functions and aggregates that the oracle's SPARQL text calls by an IRI.

Oxigraph stores the value of a literal and forgets its spelling, and it has its own rules for
numbers, comparisons and order. So the store holds every literal as an opaque one: a text that is
the literal in N-Triples. Two terms are then the same only if they are spelled the same. `VALUE`
gives Oxigraph the value of an opaque literal, and `TERM` makes a computed value opaque again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import pyoxigraph as ox

from quadweir.algebra.expressions import AggregateCall
from quadweir.algebra.functions import call, default_context, lookup
from quadweir.algebra.moments import ExpressionError
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, TripleTerm, parse_term, triple_of
from quadweir.testing import casts, literals
from quadweir.testing.elements import from_oxigraph
from quadweir.testing.literals import NUMERIC, OracleDuration, OracleMoment, OracleNumber
from quadweir.testing.oxigraph_terms import to_oxigraph
from quadweir.vocab import XSD

BASE: Final = "urn:quadweir:oracle:"
OPAQUE: Final = f"{BASE}literal"
VALUE: Final = f"{BASE}value"
TERM: Final = f"{BASE}term"
STR: Final = f"{BASE}str"
DATATYPE: Final = f"{BASE}datatype"
STRDT: Final = f"{BASE}strdt"
UNKNOWN: Final = f"{BASE}unknown"
PART: Final = f"{BASE}part"
CAST: Final = f"{BASE}cast:"
SAME_TERM: Final = f"{BASE}same-term"
ADD: Final = f"{BASE}add"
SUBTRACT: Final = f"{BASE}subtract"
MULTIPLY: Final = f"{BASE}multiply"
DIVIDE: Final = f"{BASE}divide"
NEGATE: Final = f"{BASE}negate"
TRUTH: Final = f"{BASE}truth"
EQUAL: Final = f"{BASE}equal"
LESS: Final = f"{BASE}less"
AT_MOST: Final = f"{BASE}at-most"
ORDER: Final = f"{BASE}order"
SPELLING: Final = f"{BASE}spelling"
# The marker for an aggregate's argument without a value.
ERROR: Final = f"{BASE}error"
_HAVE_PARTS: Final = (XSD.dateTime, XSD.date, XSD.time)
_NO_VALUE: Final = ox.NamedNode(f"{BASE}no-value")


def opaque(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """A term as the store holds it; a triple term is opaque too."""
    if isinstance(term, Literal | TripleTerm):
        return ox.Literal(str(term), datatype=ox.NamedNode(OPAQUE))
    found = to_oxigraph(term)
    assert isinstance(found, ox.NamedNode | ox.BlankNode)
    return found


def opaque_quad(quad: Quad, graph: str | None) -> ox.Quad:
    """Put a triple into a graph of the store; None is the default graph."""
    name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    subject = opaque(quad.subject)
    assert isinstance(subject, ox.NamedNode | ox.BlankNode)
    return ox.Quad(subject, ox.NamedNode(quad.predicate.value), opaque(quad.object), name)


def from_store(term: Any) -> Term:
    """Undo `opaque`."""
    if isinstance(term, ox.Literal) and term.datatype.value == OPAQUE:
        return parse_term(term.value)
    if isinstance(term, ox.Triple):
        subject, predicate = from_oxigraph(term.subject), from_oxigraph(term.predicate)
        made = triple_of(subject, predicate, from_store(term.object))
        assert made is not None
        return made
    return from_oxigraph(term)


def _value(term: Any) -> Any:
    """A literal as Oxigraph computes with it; one that has no value here has none there."""
    found = from_store(term)
    if isinstance(found, TripleTerm):
        # Its parts stay opaque; Oxigraph takes them out.
        subject, predicate = to_oxigraph(found.subject), ox.NamedNode(found.predicate.value)
        return ox.Triple(subject, predicate, opaque(found.object))  # type: ignore[arg-type]
    if not isinstance(found, Literal):
        return term
    known = literals.read(found)
    if known is None:
        return ox.Literal(found.lexical, datatype=_NO_VALUE)
    if isinstance(known, OracleNumber):
        return to_oxigraph(literals.spell(known))
    return to_oxigraph(found)


def _term(term: Any) -> Any:
    """Take what Oxigraph computed; numbers are spelled as the engine documents it."""
    if isinstance(term, ox.Literal) and term.datatype.value == OPAQUE:
        return term
    found = from_store(term)
    if isinstance(found, Literal) and found.datatype.value in (XSD.double, XSD.float):
        found = Literal(literals.floating(found.lexical), datatype=found.datatype)
    elif isinstance(found, Literal) and found.datatype.value == XSD.decimal:
        known = literals.read(found)
        if not isinstance(known, OracleNumber):
            return None
        found = literals.spell(known)
    return opaque(found)


def _text(term: Any) -> Any:
    match from_store(term):
        case Literal(lexical=text) | IRI(value=text):
            return ox.Literal(text)
    return None


def _datatype(term: Any) -> Any:
    found = from_store(term)
    return ox.NamedNode(found.datatype.value) if isinstance(found, Literal) else None


def _typed(text: Any, datatype: Any) -> Any:
    """Make a literal of any datatype, spelled as it is given."""
    found, name = from_store(text), from_store(datatype)
    if not isinstance(found, Literal) or not isinstance(name, IRI):
        return None
    if found.language is not None or found.datatype.value != XSD.string:
        return None
    return opaque(Literal(found.lexical, datatype=name))


def _by_oxigraph(expression: str, *terms: Any) -> Any:
    """Compute an expression over ?a and ?b, which have the values of terms."""
    # Over constants Oxigraph finds no value for some sums of dates and durations.
    names, row = ("?a", "?b")[: len(terms)], " ".join(str(_value(term)) for term in terms)
    text = f"SELECT ({expression} AS ?found) {{ VALUES ({' '.join(names)}) {{ ({row}) }} }}"
    (answer,) = ox.Store().query(text)  # type: ignore[misc]
    return None if answer["found"] is None else _term(answer["found"])


def _cast(datatype: str) -> Callable[[Any], Any]:
    def cast(term: Any) -> Any:
        found = from_store(term)
        if isinstance(found, Literal) and isinstance(literals.read(found), OracleMoment):
            return _by_oxigraph(f"<{datatype}>(?a)", term)
        done = casts.cast(found, datatype)
        return None if done is None else opaque(done)

    return cast


def _with_parts(term: Any) -> Any:
    """The value of a date or time that is asked for a part; others have none."""
    found = from_store(term)
    has_parts = isinstance(found, Literal) and found.datatype.value in _HAVE_PARTS
    return _value(term) if has_parts else None


def _calculated(operator: str) -> Callable[[Any, Any], Any]:
    """Compute with two terms; Oxigraph adds and subtracts dates and durations."""

    def calculate(left: Any, right: Any) -> Any:
        a, b = from_store(left), from_store(right)
        if not isinstance(a, Literal) or not isinstance(b, Literal):
            return None
        one, other = literals.read(a), literals.read(b)
        if isinstance(one, OracleNumber) and isinstance(other, OracleNumber):
            found = literals.calculate(operator, one, other)
            return None if found is None else opaque(literals.spell(found))
        match operator, one, other:
            case ("*", OracleDuration() as duration, OracleNumber() as factor):
                length = casts.multiplied(duration, factor)
            case ("*", OracleNumber() as factor, OracleDuration() as duration):
                length = casts.multiplied(duration, factor)
            case ("/", OracleDuration() as duration, OracleNumber() as divisor):
                length = casts.divided(duration, divisor)
            case ("+", OracleDuration(), OracleMoment()):
                return calculate(right, left)
            case (_, OracleMoment(datatype=XSD.time), OracleDuration(months=months)) if months:
                return None
            case _:
                return _by_oxigraph(f"?a {operator} ?b", left, right)
        return None if length is None else opaque(casts.spell_duration(length))

    return calculate


def _negated(term: Any) -> Any:
    found = from_store(term)
    value = literals.read(found) if isinstance(found, Literal) else None
    if not isinstance(value, OracleNumber):
        return None
    turned = literals.number(value.datatype, -value.value)
    return None if turned is None else opaque(literals.spell(turned))


def _boolean(value: bool | None) -> Any:
    if value is None:
        return None
    return ox.Literal("true" if value else "false", datatype=ox.NamedNode(XSD.boolean))


def _on_terms(test: Callable[..., bool | None]) -> Callable[..., Any]:
    return lambda *terms: _boolean(test(*map(from_store, terms)))


_BY_NAME: Final[dict[str, Callable[..., Any]]] = {
    VALUE: _value,
    TERM: _term,
    STR: _text,
    DATATYPE: _datatype,
    STRDT: _typed,
    UNKNOWN: lambda: None,
    PART: _with_parts,
    **{CAST + target: _cast(target) for target in casts.TARGETS},
    SAME_TERM: _on_terms(lambda a, b: a == b),
    ADD: _calculated("+"),
    SUBTRACT: _calculated("-"),
    MULTIPLY: _calculated("*"),
    DIVIDE: _calculated("/"),
    NEGATE: _negated,
    TRUTH: _on_terms(literals.truth),
    EQUAL: _on_terms(literals.equal),
    LESS: _on_terms(literals.less),
    AT_MOST: _on_terms(literals.at_most),
    ORDER: lambda term: ox.Literal(literals.order_key(from_store(term))),
    SPELLING: lambda term: ox.Literal(str(from_store(term))),
}
FUNCTIONS: Final = {ox.NamedNode(name): function for name, function in _BY_NAME.items()}


def is_by_iri(name: IRI) -> bool:
    """Whether the oracle calls a function's own code: one of GeoSPARQL, or one that a user registered."""
    # The oracle has casts of its own.
    return not name.value.startswith(XSD.base) and lookup(name) is not None


def by_iri(name: IRI) -> Callable[..., Any]:
    """Call such a function over terms of the store."""

    def function(*terms: Any) -> Any:
        try:
            return opaque(call(name, tuple(map(from_store, terms)), default_context()))
        except ExpressionError:
            return None

    return function


# --- aggregates -------------------------------------------------------------------------------


def accumulator(aggregate: AggregateCall) -> Callable[[], Any]:
    """Make what gathers the values of a group, and gives the aggregate of them."""

    class Accumulator:
        def __init__(self) -> None:
            self.terms: list[Term] = []

        def accumulate(self, term: Any) -> None:
            self.terms.append(from_store(term))

        def finish(self) -> Any:
            found = _aggregated(aggregate, self.terms)
            return None if found is None else opaque(found)

    return Accumulator


def _aggregated(aggregate: AggregateCall, terms: list[Term]) -> Term | None:
    values = [term for term in terms if term != IRI(ERROR)]
    is_error = len(values) < len(terms)
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    values.sort(key=str)
    match aggregate.function:
        case "COUNT":
            return Literal(str(len(values)), datatype=IRI(XSD.integer))
        case "SAMPLE":
            return values[0] if values else None
        case _ if is_error:
            return None
        case "MIN" | "MAX":
            ordered = sorted(values, key=literals.order_key)  # equal ones stay in order of spelling
            return (ordered[0] if aggregate.function == "MIN" else ordered[-1]) if ordered else None
        case "GROUP_CONCAT":
            if any(isinstance(term, BlankNode | TripleTerm) for term in values):
                return None
            texts = (term.lexical if isinstance(term, Literal) else term.value for term in values)  # type: ignore[union-attr]
            return Literal((aggregate.separator or "").join(texts))
        case _:
            found = _total(values, average=aggregate.function == "AVG")
            return None if found is None else literals.spell(found)


def _total(values: list[Term], *, average: bool) -> OracleNumber | None:
    """Add exactly and round once; an average divides the rounded total."""
    numbers = [literals.read(each) if isinstance(each, Literal) else None for each in values]
    kind: str = XSD.integer
    total = Fraction(0)
    odd: list[float] = []
    for each in numbers:
        if not isinstance(each, OracleNumber):
            return None
        kind = max(kind, each.datatype, key=NUMERIC.index)
        if math.isfinite(each.value):
            total += Fraction(each.value)
        else:
            odd.append(float(each.value))
    found = literals.number(kind, sum(odd) if odd else total)
    if found is None or not average or not numbers:
        return found
    return literals.calculate("/", found, OracleNumber(XSD.integer, Fraction(len(numbers))))
