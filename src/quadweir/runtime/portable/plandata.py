"""Plans as JSON, so that a checkpoint can say how its shards were made.

A plan is a tree of frozen dataclasses. Each distinct object is one entry of a list and refers to others
by their places, so what a plan shares is written once. Nothing in the text is code: classes are looked
up among the dataclasses and enumerations of a few of our own modules, and each checks itself when it is
made.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

_ROOTS: Final = ("quadweir.algebra.", "quadweir.plan.", "quadweir.entailment.")
_MODULES: Final = frozenset(
    {
        "quadweir.terms",
        "quadweir.spans",
        "quadweir.kernel.streamjoin.windows",
        "quadweir.kernel.streamjoin.policies",
        "quadweir.runtime.joins.hosted",
    }
)
_PLACES: Final = frozenset({"span"})
"""Fields that say where something stands in a text; a plan without them is equal."""
_MOST_ENTRIES: Final = 1_000_000

_TEXTS: Final[Mapping[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]]] = {
    "float": (float, repr, float),
    "decimal": (Decimal, str, Decimal),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}


def as_data(value: Any) -> list[Any]:
    """Return a plan, or a part of one, as lists, texts and numbers.

    >>> from quadweir.terms import Variable
    >>> x = Variable("x")
    >>> as_data((x, x))
    ['x', ['quadweir.terms.Variable', 0], ['tuple', 1, 1]]
    """
    writer = _Writer()
    writer.place(value)
    return writer.entries


def from_data(entries: Iterable[Any]) -> Any:
    """Return what `as_data` made entries of.

    Raises:
        ValueError: they were not made by it.
    """
    found: list[Any] = []
    for entry in entries:
        if len(found) >= _MOST_ENTRIES:
            raise ValueError(f"a plan with more than {_MOST_ENTRIES:,} parts")
        found.append(_made(entry, found))
    if not found:
        raise ValueError("a plan without parts")
    return found[-1]


class _Writer:
    """Writes each distinct object once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._places: dict[int, int] = {}
        self._scalars: dict[tuple[type, Any], int] = {}
        # Places are found by identity: nothing may be freed meanwhile.
        self._held: list[Any] = []

    def place(self, value: Any) -> int:
        if value is None or (isinstance(value, str | int) and not isinstance(value, Enum)):
            key = (type(value), value)
            if key not in self._scalars:
                self._scalars[key] = self._add(value)
            return self._scalars[key]
        if id(value) not in self._places:
            self._held.append(value)
            self._places[id(value)] = self._add(self._entry(value))
        return self._places[id(value)]

    def _add(self, entry: Any) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def _entry(self, value: Any) -> list[Any]:
        if isinstance(value, Enum):
            return ["enum", _name_of(type(value)), value.name]
        if is_dataclass(value):
            parts = [
                None if each.name in _PLACES else getattr(value, each.name)
                for each in _own(type(value))
            ]
            return [_name_of(type(value)), *map(self.place, parts)]
        if isinstance(value, timedelta):
            return ["timedelta", value.days, value.seconds, value.microseconds]
        if isinstance(value, tuple):
            return ["tuple", *map(self.place, value)]
        if isinstance(value, frozenset):
            return ["frozenset", *map(self.place, sorted(value, key=repr))]
        if isinstance(value, Mapping):
            return ["mapping", *(self.place(each) for pair in value.items() for each in pair)]
        for name, (kind, write, _) in _TEXTS.items():
            if type(value) is kind:
                return [name, write(value)]
        raise TypeError(f"a plan has a {type(value).__name__}, which cannot be written")


def _made(entry: Any, found: list[Any]) -> Any:
    if not isinstance(entry, list):
        if entry is not None and not isinstance(entry, str | int):
            raise ValueError(f"a plan has {entry!r}")
        return entry
    name, *parts = entry
    if name in _TEXTS:
        return _TEXTS[name][2](str(parts[0]))
    match name:
        case "enum":
            kind, member = parts
            return _class_of(kind, Enum)[member]
        case "timedelta":
            days, seconds, microseconds = map(int, parts)
            return timedelta(days, seconds, microseconds)
    # Entries refer to earlier ones only.
    values = [found[place] for place in map(_place, parts)]
    match name:
        case "tuple":
            return tuple(values)
        case "frozenset":
            return frozenset(values)
        case "mapping":
            return MappingProxyType(dict(zip(values[::2], values[1::2], strict=True)))
    made: Any = _class_of(name, object)
    if not _is_dataclass(made):
        raise ValueError(f"{name} is no part of a plan")
    own = _own(made)
    if len(own) != len(values):
        raise ValueError(f"{name} has other parts in this release")
    given = {
        each.name: value
        for each, value in zip(own, values, strict=True)
        if each.name not in _PLACES or _is_needed(each)
    }
    return made(**given)


def _is_dataclass(kind: type) -> bool:
    return is_dataclass(kind)


def _own(kind: Any) -> list[Any]:
    return [each for each in fields(kind) if each.init]


def _is_needed(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _place(number: Any) -> int:
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"a plan refers to {number!r}")
    return number


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _class_of(name: str, base: type) -> Any:
    module, _, own = str(name).rpartition(".")
    if not (module.startswith(_ROOTS) or module in _MODULES):
        raise ValueError(f"{name} is no part of a plan")
    try:
        kind = getattr(importlib.import_module(module), own)
    except (ImportError, AttributeError):
        raise ValueError(f"this release has no {name}") from None
    if not isinstance(kind, type) or kind.__module__ != module or not issubclass(kind, base):
        raise ValueError(f"{name} is no part of a plan")
    return kind
