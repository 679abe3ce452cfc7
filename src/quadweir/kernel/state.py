"""What the state of a shard depends on, and a step as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.render import render
from quadweir.errors import StateError
from quadweir.kernel.clocks import Elements
from quadweir.kernel.codec import (
    FORMAT_VERSION,
    StateKind,
    fingerprint,
    read_columns,
    read_frame,
    write_columns,
    write_frame,
)
from quadweir.kernel.dataflow import Dataflow, part
from quadweir.kernel.events import Events, MatchColumns, Recorded
from quadweir.plan.program import Program
from quadweir.terms import Variable


def fingerprint_of(program: Program, dataflow: Dataflow) -> bytes:
    """Digest what state refers to: the query, the operators made of it, the static rows in them."""
    parts: list[str | bytes] = _named(program)
    for operator, inputs in dataflow.operators:
        parts.append(f"{type(operator).__name__} {inputs} {_names(operator.variables)}")
        if operator.digest is not None:
            parts.append(operator.digest)
    return fingerprint(*parts)


def windows_of(program: Program, dataflow: Dataflow) -> bytes:
    """Digest what windows are there and what is held of each, whatever is made of that."""
    parts = [*_named(program), f"eager {program.eager}"]
    for match, leaf in dataflow.leaves:
        source = f"{match.source.window} {match.source.stream} {match.carried}"
        parts.append(f"{type(leaf).__name__} {source} {_names(leaf.variables)}")
    return fingerprint(*parts)


def _named(program: Program) -> list[str | bytes]:
    query = replace(program.query, name=None)
    return [str(FORMAT_VERSION), render(query), *program.streams]


def _names(variables: Sequence[Variable]) -> str:
    return " ".join(map(str, variables))


def write_delta(query: bytes, step: Recorded) -> bytes:
    """Write down a step."""
    events = step.events
    arrays: dict[str, NDArray[Any]] = {
        "step": np.array([step.number, step.through], dtype=np.int64),
        "seen": np.array(
            [(place, *times) for place, times in events.seen.items()], dtype=np.int64
        ).reshape(-1, 3),
    }
    for place, matches in events.matches.items():
        arrays[f"match.{place}.time"] = matches.time
        arrays[f"match.{place}.position"] = matches.position
        arrays[f"match.{place}.columns"] = write_columns(list(matches.columns))
    for place, elements in events.elements.items():
        for name, column in elements._asdict().items():
            arrays[f"element.{place}.{name}"] = column
    return write_frame(StateKind.DELTA, query, arrays)


def read_delta(query: bytes, data: bytes) -> Recorded:
    """Read a step; raises `StateError` where it does not fit."""
    arrays = read_frame(StateKind.DELTA, query, data)
    try:
        number, through = (int(each) for each in arrays["step"])
        matches = {}
        for place in _places("match.", arrays):
            own = part(f"match.{place}.", arrays)
            columns = read_columns(own["columns"])
            if any(len(each) != len(own["time"]) for each in (own["position"], *columns)):
                raise ValueError("columns of different lengths")
            matches[place] = MatchColumns(own["time"], own["position"], columns)
        elements = {
            place: Elements(**part(f"element.{place}.", arrays))
            for place in _places("element.", arrays)
        }
        seen = {int(place): (int(first), int(last)) for place, first, last in arrays["seen"]}
    except (KeyError, ValueError, TypeError) as error:
        raise StateError("a delta that lacks parts", detail=str(error)) from error
    return Recorded(number, Events(matches, elements, seen), through)


def _places(prefix: str, arrays: dict[str, NDArray[Any]]) -> list[int]:
    names = (name[len(prefix) :] for name in arrays if name.startswith(prefix))
    return sorted({int(name.partition(".")[0]) for name in names})
