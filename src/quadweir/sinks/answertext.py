"""A few answers as lines of text, without Spark.

For three answers, Spark would take longer to write the lines than everything else takes. The lines
are the same as those of `answerlines`; tests compare them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from quadweir import rows
from quadweir.sinks.lineformat import LineFormat

_NEEDS_QUOTES: Final = re.compile('[",\r\n]')

Spelled = Sequence[str | None]
"""The spellings of terms, of one answer or of one variable; None for unbound."""


def answer_text(
    form: LineFormat, t: Sequence[int], sign: Sequence[str], bound: Mapping[str, Spelled]
) -> list[str] | None:
    r"""Return solutions as lines; None if the format is not one of solutions.

    Args:
        form: the format.
        t: the report instant of each answer.
        sign: the sign of each answer, + or -.
        bound: the terms of each variable, in the order of SELECT.

    >>> answer_text(LineFormat.ANSWERS_TSV, [5], ["+"], {"x": ["<urn:a>"], "y": [None]})
    ['5\t+\t<urn:a>\t']
    """
    write = _FORMATS.get(form)
    return None if write is None else list(write(t, sign, bound))


def header_of(variables: Sequence[str], *, tabs: bool) -> str:
    """Return the first line of a CSV or TSV file of answers.

    >>> header_of(["x"], tabs=False)
    't,sign,x'
    """
    names = [rows.REPORT, rows.SIGN, *variables]
    return "\t".join(f"?{name}" for name in names) if tabs else ",".join(names)


def _json(t: Sequence[int], sign: Sequence[str], bound: Mapping[str, Spelled]) -> Iterator[str]:
    names = sorted(bound)
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    columns = [bound[name] for name in names]
    for place, (instant, which) in enumerate(zip(t, sign, strict=True)):
        terms = [(key, column[place]) for key, column in zip(keys, columns, strict=True)]
        members = ",".join(f"{key}:{json_term(term)}" for key, term in terms if term is not None)
        yield (
            f'{{"{rows.REPORT}":{instant},"{rows.SIGN}":"{which}","{rows.BINDINGS}":{{{members}}}}}'
        )


def json_term(term: str) -> str:
    """Return a term as JSON; the escapes of a canonical spelling are those of JSON."""
    if term.startswith("<<"):
        # Only the object can contain spaces.
        parts = term.removeprefix("<<( ").removesuffix(" )>>").split(" ", 2)
        subject, predicate, end = map(json_term, parts)
        value = f'"subject":{subject},"predicate":{predicate},"object":{end}'
        return f'{{"type":"triple","value":{{{value}}}}}'
    if term.startswith("<"):
        return f'{{"type":"uri","value":"{term[1:-1]}"}}'
    if term.startswith("_:"):
        return f'{{"type":"bnode","value":"{term[2:]}"}}'
    quoted, tail = _parts(term)
    if tail.startswith("@"):
        tail = f',"xml:lang":"{tail[1:]}"'
    elif tail:
        tail = f',"datatype":"{tail[3:-1]}"'
    return f'{{"type":"literal","value":{quoted}{tail}}}'


def _csv(t: Sequence[int], sign: Sequence[str], bound: Mapping[str, Spelled]) -> Iterator[str]:
    for instant, which, *terms in zip(t, sign, *bound.values(), strict=True):
        yield ",".join([str(instant), which, *map(_csv_value, terms)])


def _csv_value(term: str | None) -> str:
    if term is None:
        return ""
    value = term
    if term.startswith("<<"):
        pass  # as N-Triples spells it
    elif term.startswith("<"):
        value = term[1:-1]
    elif term.startswith('"'):
        quoted, _ = _parts(term)
        value = quoted[1:-1]
        if "\\" in value:
            value = json.loads(quoted)
    quotes = value.replace('"', '""')
    return f'"{quotes}"' if _NEEDS_QUOTES.search(value) else value


def _tsv(t: Sequence[int], sign: Sequence[str], bound: Mapping[str, Spelled]) -> Iterator[str]:
    for instant, which, *terms in zip(t, sign, *bound.values(), strict=True):
        yield "\t".join([str(instant), which, *(term or "" for term in terms)])


def _parts(literal: str) -> tuple[str, str]:
    """Split a literal into the quoted part, with its quotation marks, and the rest."""
    end = literal.rindex('"') + 1
    return literal[:end], literal[end:]


_FORMATS: Final[
    Mapping[
        LineFormat, Callable[[Sequence[int], Sequence[str], Mapping[str, Spelled]], Iterator[str]]
    ]
] = {
    LineFormat.ANSWERS_JSONL: _json,
    LineFormat.ANSWERS_CSV: _csv,
    LineFormat.ANSWERS_TSV: _tsv,
}
