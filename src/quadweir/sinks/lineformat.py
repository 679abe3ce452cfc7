"""The formats of lines, by name; `lines.py` writes them with column expressions."""

from __future__ import annotations

from enum import StrEnum


class LineFormat(StrEnum):
    """How a row is written as one line."""

    NQUADS = "nquads"
    """A quad; rows with NULL as graph are in the default graph."""
    NTRIPLES = "ntriples"
    """The triple of a quad; its graph name is left out."""
    TIMED_LINES = "timed-lines"
    """A statement after its event time: a stream file that can be read again."""
    JSONL = "jsonl"
    """Any row, as a JSON object with every column."""
    ANSWERS_JSONL = "answers-jsonl"
    """An answer of a query, as JSON with terms as in SPARQL's JSON results."""
    ANSWERS_CSV = "answers-csv"
    """An answer of a query, as in SPARQL's CSV results; lines have no header."""
    ANSWERS_TSV = "answers-tsv"
    """An answer of a query, as in SPARQL's TSV results; lines have no header."""

    @property
    def suffix(self) -> str:
        """The file name extension."""
        return {
            "nquads": ".nq",
            "ntriples": ".nt",
            "timed-lines": ".stream",
            "answers-csv": ".csv",
            "answers-tsv": ".tsv",
        }.get(self, ".jsonl")
