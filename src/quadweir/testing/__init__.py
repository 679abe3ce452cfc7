"""Streams, static data and a query come in, written down by a test.

Out go the right answers, computed from scratch at every report instant, and the differences to
those of another engine. Read `oracle.py` first.
"""

from __future__ import annotations

from quadweir.sources.streamfiles import Element
from quadweir.testing.answers import (
    Answer,
    answers_from_json,
    canonical_term,
    diff_answers,
    multiset,
    same_answers,
)
from quadweir.testing.elements import HandCrankedClock, MemoryStream, read_turtle
from quadweir.testing.oracle import Oracle, OracleRun
from quadweir.testing.reasoner import Reasoner
from quadweir.testing.scoping import blank_label
from quadweir.testing.watermark import ArrivedElement

__all__ = [
    "Answer",
    "ArrivedElement",
    "Element",
    "HandCrankedClock",
    "MemoryStream",
    "Oracle",
    "Reasoner",
    "OracleRun",
    "answers_from_json",
    "blank_label",
    "canonical_term",
    "diff_answers",
    "multiset",
    "read_turtle",
    "same_answers",
]
