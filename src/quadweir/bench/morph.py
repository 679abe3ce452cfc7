"""Morph-KGC as a baseline, in its own virtual environment.

Its packages would conflict with ours. The environment is created only on request.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from quadweir.bench.roadsensors import TRIPLES, mapping_text, write_records

PACKAGE: Final = "morph-kgc"
_FEW: Final = 1000
_STRING: Final = b"^^<http://www.w3.org/2001/XMLSchema#string>"


class NoMorphError(Exception):
    """Morph-KGC cannot take part, and why."""


def home() -> Path:
    """The virtual environment that Morph-KGC lives in."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "quadweir" / "morph-kgc"


def find(*, install: bool, on_step: Callable[[str], None] = lambda _: None) -> Path:
    """The Python interpreter that has Morph-KGC.

    Raises:
        NoMorphError: it is not installed, or cannot be.
    """
    python = home() / "bin" / "python"
    if not python.is_file() and not install:
        raise NoMorphError("not installed; --install-morph fetches it from PyPI")
    if not python.is_file():
        on_step("installing Morph-KGC")
        _call([sys.executable, "-m", "venv", str(home())], "no virtual environment")
    if _fails([str(python), "-c", "import morph_kgc"]):
        if not install:
            raise NoMorphError("its virtual environment is broken; --install-morph repairs it")
        _call([str(python), "-m", "pip", "install", "-q", PACKAGE], "cannot be installed")
    return python


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def _call(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output_lines = (done.stderr or done.stdout).strip().splitlines()
        raise NoMorphError(f"{what}: {output_lines[-1] if output_lines else done.returncode}")


@final
class Morph:
    """Runs of Morph-KGC over the same records, with two processes."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._folder = folder

    def rate(self, form: str, records: int) -> int:
        """Triples per second without the time to start.

        Raises:
            NoMorphError: a run failed.
        """
        few = self._seconds(form, _FEW)
        many = self._seconds(form, records)
        return round(TRIPLES * (records - _FEW) / max(many - few, 0.001))

    def lines(self, form: str) -> set[bytes]:
        """The triples of the last run, a plain string as RDF 1.1 spells it."""
        text = (self._folder / f"{form}.nt").read_bytes()
        return {line.replace(_STRING, b"") for line in text.splitlines() if line.strip()}

    def _seconds(self, form: str, records: int) -> float:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_records(self._folder, records, form)
        (self._folder / f"{form}.ttl").write_text(mapping_text(form), encoding="utf-8")
        (self._folder / f"{form}.ini").write_text(
            "[CONFIGURATION]\n"
            f"output_file: {form}.nt\noutput_format: N-TRIPLES\n"
            "number_of_processes: 2\nlogging_level: ERROR\n"
            f"[SOURCE]\nmappings: {form}.ttl\n",
            encoding="utf-8",
        )
        start = time.perf_counter()
        done = subprocess.run(
            [str(self._python), "-m", "morph_kgc", f"{form}.ini"],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        elapsed = time.perf_counter() - start
        if done.returncode:
            output_lines = done.stderr.strip().splitlines()
            raise NoMorphError(f"failed: {output_lines[-1] if output_lines else done.returncode}")
        return elapsed
