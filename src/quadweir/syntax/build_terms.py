"""Tokens to terms: IRIs, prefixed names, literals, durations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from lark import Token, Tree

from quadweir.errors import QuerySyntaxError
from quadweir.spans import Span
from quadweir.syntax.durations import LONGEST_MS, compound_ms, iso_ms
from quadweir.syntax.iris import has_scheme, resolve
from quadweir.syntax.scan import SourceText
from quadweir.terms import IRI, Literal, Variable
from quadweir.vocab import XSD

Branch: TypeAlias = Tree[Token]
Child: TypeAlias = Tree[Token] | Token

# The exact character classes of names; sparql.lark lets any character beyond ASCII pass.
# https://www.w3.org/TR/sparql11-query/#rPN_CHARS_BASE
_BASE: Final = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_LATER: Final = "\u00b7\u0300-\u036f\u203f\u2040"  # not at the start of a name
_FOREIGN: Final = re.compile(f"[^\\x00-\\x7f{_BASE}{_LATER}]")
_NOT_FIRST: Final = re.compile(f"[{_LATER}]")
_LOCAL_ESCAPE: Final = re.compile(r"\\(.)")
_STRING_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
}
_VERSIONS: Final = ("1.1", "1.2-basic", "1.2")
_INTEGER: Final = IRI(XSD.integer)
_DECIMAL: Final = IRI(XSD.decimal)
_DOUBLE: Final = IRI(XSD.double)
_BOOLEAN: Final = IRI(XSD.boolean)


def tokens(child: Child) -> Iterator[Token]:
    """Every token below, left to right."""
    stack: list[Child] = [child]
    while stack:
        each = stack.pop()
        if isinstance(each, Token):
            yield each
        else:
            stack.extend(reversed(each.children))


def trees(branch: Branch, *names: str) -> list[Branch]:
    """The direct children that are trees, or those of them with one of the names."""
    return [
        child
        for child in branch.children
        if isinstance(child, Tree) and (not names or child.data in names)
    ]


def find(branch: Branch, name: str) -> Branch | None:
    """The first direct child with this name."""
    for child in branch.children:
        if isinstance(child, Tree) and child.data == name:
            return child
    return None


def words(branch: Branch) -> set[str]:
    """The kinds of the direct children that are tokens."""
    return {child.type for child in branch.children if isinstance(child, Token)}


class TermBuilder:
    """The facts about one query that all builders share: its text, base and prefixes."""

    def __init__(
        self, source: SourceText, *, base: str | None, prefixes: Mapping[str, str] | None
    ) -> None:
        self.source = source
        self.base = base
        self.prefixes: dict[str, str] = dict(prefixes or {})
        self._iris: dict[str, IRI] = {}
        self._counter = 0

    # --- places and errors --------------------------------------------------------------------

    def span(self, child: Child) -> Span | None:
        """Name the stretch of text that a subtree covers."""
        first = last = child
        while not isinstance(first, Token):
            if not first.children:
                return None
            first = first.children[0]
        if first.start_pos is None:
            return None
        while not isinstance(last, Token):
            if not last.children:
                return self.source.span(first.start_pos, first.end_pos)
            last = last.children[-1]
        return self.source.span(first.start_pos, last.end_pos)

    def error(self, message: str, place: Child, *, hint: str | None = None) -> QuerySyntaxError:
        return QuerySyntaxError(message, hint=hint, span=self.span(place))

    def hidden(self, kind: str) -> Variable:
        """Make a variable that no query text can name."""
        self._counter += 1
        return Variable(f"_:{kind}{self._counter}")

    # --- names --------------------------------------------------------------------------------

    def prologue(self, tree: Branch) -> None:
        for declaration in trees(tree):
            if declaration.data == "base":
                (reference,) = declaration.children
                self.base = self._reference(reference).value
            elif declaration.data == "version":
                (version,) = declaration.children
                if self.string(version) not in _VERSIONS:
                    raise self.error(
                        f"there is no version {version} of SPARQL that Quadweir reads",
                        version,
                        hint=f"Write one of {', '.join(_VERSIONS)}, or leave it out.",
                    )
            else:
                prefix, reference = declaration.children
                self.check_name(str(prefix)[:-1], prefix)
                self.prefixes[str(prefix)[:-1]] = self._reference(reference).value
        # A name means something else once its prefix does.
        self._iris.clear()

    def iri(self, tree: Child) -> IRI:
        """Read an IRI or a prefixed name."""
        token = tree if isinstance(tree, Token) else tree.children[0]
        assert isinstance(token, Token)
        known = self._iris.get(token)
        if known is None:
            known = self._reference(token) if token.type == "IRIREF" else self._expand(token)
            self._iris[token] = known
        return known

    def name(self, token: Token) -> IRI:
        """Read the name of a stream or window, which may be relative where there is no base.

        The engines whose queries we read let people write `<stream1>` or a bare word; such a name
        is kept as it stands, and the stream is registered under the same spelling.
        """
        if token.type == "NAME":
            return IRI(str(token))
        if token.type == "IRIREF" and self.base is None and not has_scheme(token[1:-1]):
            return IRI(token[1:-1])
        return self.iri(token)

    def _reference(self, token: Child) -> IRI:
        text = str(token)[1:-1]
        if not has_scheme(text):
            if self.base is None:
                raise self.error(
                    f"the IRI {token} is relative and there is no base",
                    token,
                    hint="Write the whole IRI, put BASE <...> at the start of the query, or give a base: "
                    "--base IRI, in Python base=.",
                )
            text = resolve(text, self.base)
        iri = IRI(text)
        if not iri.is_valid():
            raise self.error(f"{token} is not a valid IRI", token)
        return iri

    def _expand(self, token: Token) -> IRI:
        prefix, _, local = token.partition(":")
        if not token.isascii():
            self.check_name(prefix, token)
            self.check_name(local, token)
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            raise self.error(
                f"the prefix {prefix}: is not declared",
                token,
                hint=f"Put PREFIX {prefix}: <...> at the start of the query.",
            )
        return IRI(namespace + _LOCAL_ESCAPE.sub(r"\1", local))

    def variable(self, token: Child) -> Variable:
        text = str(token)
        if not text.isascii():
            self.check_name(text[1:], token)
        return Variable(text[1:])

    def check_name(self, text: str, place: Child) -> None:
        """Refuse the characters beyond ASCII that SPARQL does not have in names."""
        foreign = _FOREIGN.search(text) or _NOT_FIRST.match(text)
        if foreign is not None:
            raise self.error(
                f"the character {foreign[0]!r} (U+{ord(foreign[0]):04X}) cannot stand here", place
            )

    # --- values -------------------------------------------------------------------------------

    def string(self, token: Child) -> str:
        text = str(token)
        width = 3 if text[:3] in ('"""', "'''") else 1
        inside = text[width:-width]
        if "\\" not in inside:
            return inside
        return _STRING_ESCAPE.sub(lambda match: _ESCAPES[match[1]], inside)

    def literal(self, tree: Branch) -> Literal:
        token = tree.children[0]
        assert isinstance(token, Token)
        if token.type == "STRING":
            lexical = self.string(token)
            if len(tree.children) == 1:
                return Literal(lexical)
            mark = tree.children[1]
            if isinstance(mark, Token):
                return Literal(lexical, language=mark[1:])
            return Literal(lexical, datatype=self.iri(mark))
        if token.type == "BOOLEAN":
            return Literal(token.lower(), datatype=_BOOLEAN)
        return self.number(str(token))

    def number(self, text: str) -> Literal:
        if "e" in text or "E" in text:
            return Literal(text, datatype=_DOUBLE)
        return Literal(text, datatype=_DECIMAL if "." in text else _INTEGER)

    def integer(self, token: Child, what: str) -> int:
        text = str(token)
        # Python refuses to read thousands of digits; so do we, with a place.
        if len(text) > 18:
            raise self.error(f"{what} is larger than any stream", token)
        return int(text)

    def count(self, token: Child, what: str) -> int:
        number = self.integer(token, what)
        if number == 0:
            raise self.error(f"{what} is zero", token, hint="Write 1 or more.")
        return number

    def duration_ms(self, tree: Branch, *, zero: bool = False) -> int:
        """Read a duration; a bare number is in milliseconds, the unit of event times."""
        parts = [child for child in tree.children if isinstance(child, Token)]
        if any(len(part) > 40 for part in parts):
            raise self.error("a duration is longer than ten thousand years", tree)
        try:
            if parts[0].type == "ISO_DURATION":
                total = iso_ms(str(parts[0]))
            elif len(parts) == 1:
                total = compound_ms(((str(parts[0]), "ms"),))
            else:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                total = compound_ms(tuple((str(amount), str(unit)) for amount, unit in pairs))
        except QuerySyntaxError as problem:
            raise self.error(problem.message, tree, hint=problem.hint) from None
        if total == 0 and not zero:
            raise self.error("a duration is zero", tree, hint="Write 1ms or more.")
        assert total <= LONGEST_MS
        return total
