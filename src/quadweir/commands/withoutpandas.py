"""Keeps pyarrow from importing pandas, which takes a fifth of the time of a small query.

pyarrow imports pandas, if it is there, with the first array that is made of a list, to recognise
pandas' own arrays. There are none in a command that answers in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import final


def leave_pandas_out() -> None:
    """Let pyarrow look for pandas now, and not find it; later imports find it as usual."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hider = _Hider()
    sys.meta_path.insert(0, hider)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hider)


@final
class _Hider(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as Python asks finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return None
