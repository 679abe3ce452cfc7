"""Brackets, atoms, terms and paths of the text form, read back: the lower half of `readtree`."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from quadweir.algebra.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    PatternTerm,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from quadweir.algebra.query import TemplateTerm, TripleTemplate
from quadweir.algebra.sexpr import Sexpr, flat
from quadweir.errors import QuerySyntaxError
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Ground, Literal, TripleTerm, Variable, unescape
from quadweir.vocab import XSD

AnyTerm: TypeAlias = TemplateTerm

_ATOM: Final = re.compile(
    r'\s+|(?P<bracket>[()])|(?P<atom><[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|[^\s()"]+)',
    re.DOTALL,
)
_LITERAL: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")


def parse_form(text: str) -> Sexpr:
    """Read one form.

    >>> parse_form('(extend ?x "a b"@en (bgp))')
    ['extend', '?x', '"a b"@en', ['bgp']]
    """
    stack: list[list[Sexpr]] = [[]]
    place = 0
    while place < len(text):
        match = _ATOM.match(text, place)
        if match is None:
            raise _error(text, place, f"unexpected {text[place]!r} in a query tree")
        place = match.end()
        if match["atom"] is not None:
            stack[-1].append(match["atom"])
        elif match["bracket"] == "(":
            stack.append([])
        elif match["bracket"] == ")":
            if len(stack) == 1:
                raise _error(text, match.start(), "a bracket closes that was not opened")
            done = stack.pop()
            stack[-1].append(done)
    if len(stack) > 1:
        raise _error(text, len(text), "a bracket is not closed")
    if len(stack[0]) != 1:
        raise _error(text, 0, f"a query tree is one form, and here are {len(stack[0])}")
    return stack[0][0]


def _error(text: str, place: int, message: str) -> QuerySyntaxError:
    line = text.count("\n", 0, place) + 1
    column = place - (text.rfind("\n", 0, place) + 1) + 1
    return QuerySyntaxError(message, span=Span(line, column))


def parts_of(form: Sexpr) -> list[Sexpr]:
    """Return the parts of a form in brackets."""
    if isinstance(form, str):
        raise ValueError(f"expected a form in brackets, not {form[:40]}")
    return form


def atom_of(form: Sexpr) -> str:
    """Return a word."""
    if not isinstance(form, str):
        raise ValueError(f"expected a word, not {flat(form)[:40]}")
    return form


def head_of(form: Sexpr) -> str:
    """Return the first word of a form."""
    return atom_of(parts_of(form)[0])


def term_of(form: Sexpr) -> AnyTerm:
    """Return any term."""
    if not isinstance(form, str):
        return _triple_term(form)
    atom = atom_of(form)
    if atom.startswith("<") and atom.endswith(">"):
        return IRI(atom[1:-1])
    if atom.startswith("?"):
        return Variable(atom[1:])
    if atom.startswith("_:"):
        return BlankNode(atom[2:])
    if atom in ("true", "false"):
        return Literal(atom, datatype=IRI(XSD.boolean))
    if _INTEGER.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.integer))
    if _DECIMAL.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.decimal))
    if _DOUBLE.fullmatch(atom):
        return Literal(atom, datatype=IRI(XSD.double))
    match = _LITERAL.fullmatch(atom)
    if match is None:
        raise ValueError(f"{atom[:40]} is no term")
    lexical = unescape(match[1])
    if match[2] is not None:
        return Literal(lexical, language=match[2])
    return Literal(lexical, datatype=IRI(match[3])) if match[3] is not None else Literal(lexical)


def _triple_term(form: list[Sexpr]) -> AnyTerm:
    head, *parts = form
    if head != "triple-term" or len(parts) != 3:
        raise ValueError(f"{flat(form)[:40]} is no term")
    subject, predicate, end = term_of(parts[0]), name_of(parts[1]), term_of(parts[2])
    if (
        isinstance(subject, IRI)
        and isinstance(predicate, IRI)
        and isinstance(end, IRI | Literal | TripleTerm)
    ):
        return TripleTerm(subject, predicate, end)
    return TripleTemplate(subject=subject, predicate=predicate, object=end)


def iri_of(form: Sexpr) -> IRI:
    """Return an IRI."""
    value = term_of(form)
    if not isinstance(value, IRI):
        raise ValueError(f"{value} is no IRI")
    return value


def variable_of(form: Sexpr) -> Variable:
    """Return a variable."""
    value = term_of(form)
    if not isinstance(value, Variable):
        raise ValueError(f"{value} is no variable")
    return value


def name_of(form: Sexpr) -> IRI | Variable:
    """Return an IRI or a variable."""
    value = term_of(form)
    if not isinstance(value, IRI | Variable):
        raise ValueError(f"{value} is no name")
    return value


def pattern_term_of(form: Sexpr) -> PatternTerm:
    """Return a term that may stand in a pattern."""
    value = term_of(form)
    if isinstance(value, BlankNode | TripleTemplate):
        raise ValueError(f"{flat(form)} cannot stand in a pattern")
    return value


def value_of(form: Sexpr) -> Ground:
    """Return a term without variables."""
    value = term_of(form)
    if not isinstance(value, IRI | Literal | TripleTerm):
        raise ValueError(f"{value} is no value")
    return value


def string_of(form: Sexpr) -> str:
    """Return the text of a literal."""
    value = term_of(form)
    if not isinstance(value, Literal):
        raise ValueError(f"{value} is no string")
    return value.lexical


def variables_of(form: Sexpr) -> tuple[Variable, ...]:
    """Return a list of variables."""
    return tuple(map(variable_of, parts_of(form)))


def ms_of(form: Sexpr) -> int:
    """Return a number of milliseconds."""
    return int(atom_of(form).removesuffix("ms"))


def path_of(form: Sexpr) -> Path:
    """Return a property path."""
    if isinstance(form, str):
        return Link(predicate=iri_of(form))
    head, *rest = form
    match head:
        case "inverse":
            return Inverse(path=path_of(rest[0]))
        case "sequence":
            return Sequence(paths=tuple(map(path_of, rest)))
        case "alternative":
            return Alternative(paths=tuple(map(path_of, rest)))
        case "zero-or-more":
            return ZeroOrMore(path=path_of(rest[0]))
        case "one-or-more":
            return OneOrMore(path=path_of(rest[0]))
        case "zero-or-one":
            return ZeroOrOne(path=path_of(rest[0]))
        case "none-of":
            return NegatedSet(
                forward=tuple(iri_of(each) for each in rest if isinstance(each, str)),
                backward=tuple(iri_of(each[1]) for each in rest if not isinstance(each, str)),
            )
        case _:
            raise ValueError(f"no path {flat(head)[:40]}")
