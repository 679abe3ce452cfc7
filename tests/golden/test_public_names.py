"""One golden file lists every public name with its signature, so that the API grows in plain sight.

Public is what `quadweir` exports. `pytest --update-golden` rewrites the file.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import quadweir

LIST = Path(__file__).parent / "public-names.txt"


def described() -> str:
    found = [line for name in sorted(quadweir.__all__) for line in lines("quadweir", name)]
    return "".join(f"{line}\n" for line in found)


def lines(module: str, name: str) -> Iterator[str]:
    full, found = f"{module}.{name}", getattr(import_module(module), name)
    if isinstance(found, type):
        yield f"class {full}{'' if issubclass(found, enum.Enum) else signature(found)}"
        yield from (f"  {line}" for line in members(found))
    elif callable(found):
        yield f"def {full}{signature(found)}"
    else:
        yield f"{full}: {type(found).__name__}"


def members(owner: type) -> Iterator[str]:
    """The members of a class, without those inherited from the standard library."""
    if issubclass(owner, enum.Enum):
        yield from (f"{each.name} = {each.value!r}" for each in owner)
    fields = {each.name for each in dataclasses.fields(owner)} if is_record(owner) else set()
    for name in sorted({*dir(owner)} - fields):
        kept = inspect.getattr_static(owner, name)
        home = next((each for each in owner.__mro__ if name in vars(each)), object)
        if name.startswith("_") or not home.__module__.startswith("quadweir"):
            continue
        if isinstance(kept, property):
            yield f"{name}: {inspect.signature(kept.fget).return_annotation}"  # type: ignore[arg-type]
        elif isinstance(kept, (classmethod, staticmethod)) or inspect.isfunction(kept):
            yield f"{name}{signature(getattr(owner, name))}"


def is_record(owner: type) -> bool:
    return dataclasses.is_dataclass(owner)


class Written:
    """An annotation that is shown as it is written, without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def written(annotation: Any) -> Any:
    return Written(annotation) if isinstance(annotation, str) else annotation


def signature(found: Any) -> str:
    said = inspect.signature(found)
    parameters = [
        each.replace(annotation=written(each.annotation)) for each in said.parameters.values()
    ]
    answer = written(said.return_annotation)
    return str(said.replace(parameters=parameters, return_annotation=answer))


def test_public_names_and_signatures_are_as_listed(request: pytest.FixtureRequest) -> None:
    found = described()
    if request.config.getoption("--update-golden"):
        LIST.write_text(found, encoding="utf-8")
    assert LIST.read_text(encoding="utf-8") == found
