"""The reference pages of the Python API are those that the docstrings give now."""

import subprocess
import sys

from pages import ROOT


def test_reference_pages_are_up_to_date() -> None:
    script = ROOT / "scripts" / "referencepages.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
