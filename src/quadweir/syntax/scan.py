"""One quick pass over a query text before it is parsed: escapes, bracket depth, dialect.

It sees words, names and brackets, and steps over strings, IRIs and comments, so a window's unit
inside an IRI or a keyword inside a comment is not taken for syntax.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple, final

from quadweir.errors import LimitError, QuerySyntaxError
from quadweir.spans import Span
from quadweir.syntax.limits import Limits

DIALECTS: Final = ("sparql", "rspql", "csparql", "cqels", "cqels2", "sparqlstream")

# Words and names are one alternative, strings are unrolled and never tried a second time, and one
# that nothing closes ends with its line or the text: no text makes the expression look at a
# character more than a few times.
_PIECE: Final = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
    |(?P<iri><[^<>"{}|^`\\\x00-\x20]*>)
    |(?P<string>\"{3}[^"\\]*+(?:(?:\\.|""?(?!"))[^"\\]*+)*+(?:\"{3})?
        |'{3}[^'\\]*+(?:(?:\\.|''?(?!'))[^'\\]*+)*+(?:'{3})?
        |"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"?|'[^'\\\n\r]*+(?:\\.[^'\\\n\r]*+)*+'?)
    |(?P<open>[({\[])
    |(?P<close>[)}\]])
    |(?P<variable>[?$]\w+)
    |(?P<word>[\w\-.]+)(?P<local>:[\w\-.:%\\]*)?
    |(?P<bare>:[\w\-.:%\\]*)""",
    re.VERBOSE | re.DOTALL,
)
# How windows begin in CQELS 2, but not in C-SPARQL.
_SECOND: Final = frozenset(("SLIDE", "TRIPLES", "NOW", "ALL"))
_CODEPOINT: Final = re.compile(r"\\(?:\\|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")


class ScannedWord(NamedTuple):
    """A word, name, IRI, variable or bracket, and where it starts."""

    kind: str  # "word", "name" (IRI or prefixed name), "variable", "open" or "close"
    text: str
    start: int


@final
class SourceText:
    r"""A query text with its codepoint escapes undone, which still knows the original places.

    >>> source = SourceText(r"SELECT ?caf\u00E9 { }")
    >>> source.text
    'SELECT ?café { }'
    """

    __slots__ = ("_lines", "_shifts", "name", "original", "text")

    def __init__(self, original: str, name: str | None = None) -> None:
        self.original = original
        self.name = name
        self._shifts: list[tuple[int, int]] = []  # (place in text, how far behind the original)
        self._lines: list[int] | None = None
        self.text = self._unescape() if "\\u" in original or "\\U" in original else original

    def _unescape(self) -> str:
        shift = 0

        def one(match: re.Match[str]) -> str:
            nonlocal shift
            digits = match[1] or match[2]
            if digits is None:  # an escaped backslash, for the string it stands in
                return match[0]
            point = int(digits, 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                raise QuerySyntaxError(
                    f"{match[0]} is not a Unicode character",
                    span=self._place(match.start(), match.end()),
                )
            place = match.start() - shift
            shift += len(match[0]) - 1
            self._shifts.append((place + 1, shift))
            return chr(point)

        return _CODEPOINT.sub(one, self.original)

    def span(self, start: int, end: int | None = None) -> Span:
        """Name a stretch of `text` by the lines and columns of the original."""
        return self._place(
            self._to_original(start), self._to_original(start if end is None else end)
        )

    def _to_original(self, place: int) -> int:
        if not self._shifts:
            return place
        index = bisect_right(self._shifts, (place, len(self.original))) - 1
        return place + (self._shifts[index][1] if index >= 0 else 0)

    def _place(self, start: int, end: int) -> Span:
        if self._lines is None:
            self._lines = [0, *(m.end() for m in re.finditer("\n", self.original))]
        line = bisect_right(self._lines, start)
        end_line = bisect_right(self._lines, end)
        return Span(
            line,
            start - self._lines[line - 1] + 1,
            end_line,
            end - self._lines[end_line - 1] + 1,
            self.name,
        )


def pieces(text: str) -> list[ScannedWord]:
    """List what the pass sees.

    >>> [piece.text for piece in pieces("SELECT ?x { ?x :at <http://x/5s> } # 10s")]
    ['SELECT', '?x', '{', '?x', ':at', '<http://x/5s>', '}']
    """
    found: list[ScannedWord] = []
    for match in _PIECE.finditer(text):
        kind = match.lastgroup
        if kind in ("comment", "string"):
            continue
        if kind in ("iri", "local", "bare"):
            kind = "name"
        found.append(ScannedWord(kind or "word", match[0], match.start()))
    return found


def check_nesting(source: SourceText, seen: list[ScannedWord], limits: Limits) -> None:
    """Refuse a text whose brackets go deeper than the limit."""
    depth = 0
    for piece in seen:
        if piece.kind == "open":
            depth += 1
            if depth > limits.nesting:
                raise LimitError(
                    f"the query nests brackets more than {limits.nesting} deep",
                    hint="Flatten the query, or raise the nesting limit if you trust its author.",
                    span=source.span(piece.start, piece.start + 1),
                )
        elif piece.kind == "close":
            depth = max(0, depth - 1)


def last_unclosed(text: str) -> ScannedWord | None:
    """Find the innermost bracket that nothing closes.

    >>> last_unclosed("SELECT * { ?s ?p (1 }").text
    '('
    """
    pairs = {")": "(", "}": "{", "]": "["}
    stack: list[ScannedWord] = []
    for piece in pieces(text):
        if piece.kind == "open":
            stack.append(piece)
        elif piece.kind == "close":
            if not stack or stack[-1].text != pairs[piece.text]:
                break
            stack.pop()
    return stack[-1] if stack else None


def detect(text: str) -> str:
    """The dialect of a query, recognised by its streaming syntax.

    A query without any is plain `sparql`. CQELS 2 is recognised by `FROM STREAM` together with
    `STREAM`
    blocks in WHERE that have no window, with a stream that is a plain word, or with a window that
    C-SPARQL does not have. SPARQLStream is recognised by a window that reaches back from NOW.

    >>> detect("SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE 5s] { WINDOW <w> { ?s ?p ?o } }")
    'rspql'
    >>> detect("SELECT * FROM STREAM <s> [RANGE 5s STEP 1s] { ?s ?p ?o }")
    'csparql'
    >>> detect("SELECT * { STREAM <http://x/5s> [NOW] { ?s ?p ?o } }")
    'cqels'
    >>> detect("SELECT ISTREAM ?s FROM NAMED STREAM <s> [NOW - 10 S SLIDE 1 S] { ?s ?p ?o }")
    'sparqlstream'
    """
    return detect_in(pieces(text))


def _reaches_back(scope: list[str]) -> bool:
    """Whether a window begins with [NOW - or [FROM NOW -, whatever the blanks."""
    first, *rest = (scope[1:] if scope[:1] == ["FROM"] else scope) or [""]
    if first != "NOW":
        return first.startswith("NOW-")
    return bool(rest) and (rest[0].startswith("-") or rest[0] in ("TO", "SLIDE", "STEP"))


def detect_in(seen: list[ScannedWord]) -> str:
    """The dialect, recognised from the pieces of a text."""
    words = [piece.text.upper() if piece.kind == "word" else "" for piece in seen]
    texts = [piece.text for piece in seen]
    from_stream = stream_block = bare_block = registered = False
    plain_name = timestamp = output = second = False
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        after = texts[index + 2] if index + 2 < len(texts) else ""
        match word:
            case "WINDOW" if before == "NAMED" or after == "{":
                return "rspql"
            case "ISTREAM" | "RSTREAM" | "DSTREAM" if before in ("REGISTER", "SELECT", "CONSTRUCT"):
                output = True
            case "STREAM" if before in ("FROM", "NAMED"):
                from_stream = True
                scope = words[index + 3 : index + 6] if after == "[" else []
                if _reaches_back(scope) or (before == "NAMED" and scope[:1] == ["NOW"]):
                    return "sparqlstream"
                # A plain word as a stream, or a window that C-SPARQL does not have.
                plain_stream = after == "[" and bool(words[index + 1])
                second = second or plain_stream or bool({*scope[:1]} & _SECOND)
            case "STREAM" if before not in ("ON", "REGISTER"):
                stream_block = stream_block or after == "["
                bare_block = bare_block or after == "{"
            case "REGISTER":
                registered = True
                plain_name = bool(index + 2 < len(words) and words[index + 2])
            case "COMPUTED" if registered:
                plain_name = True
            case "TIMESTAMP":
                timestamp = timestamp or (index + 1 < len(texts) and texts[index + 1] == "(")
            case _:
                pass
    if output:
        return "sparqlstream" if from_stream and not registered else "rspql"
    if from_stream:
        return "cqels2" if bare_block or second else "csparql"
    if stream_block or bare_block:
        return "cqels"
    if registered:
        return "csparql" if plain_name else "rspql"
    return "csparql" if timestamp else "sparql"
