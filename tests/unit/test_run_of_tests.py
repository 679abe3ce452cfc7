"""`make test` fails if a test fails, runs none twice, and names what failed in its last lines."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "test.py"

# Fails the first time that it runs, and passes from then on.
FLAKY = """
import pathlib, pytest

@pytest.mark.spark
def test_flaky():
    seen = pathlib.Path(__file__).with_suffix(".seen")
    before = seen.exists()
    seen.touch()
    assert before

@pytest.mark.spark
def test_of_spark():
    pass
"""


def run(folder: Path, others: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = spark: as in the repository\n")
    (folder / "test_spark.py").write_text(FLAKY)
    (folder / "test_others.py").write_text(others)
    return subprocess.run(
        [sys.executable, SCRIPT], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_test_that_fails_once_fails_the_run_and_is_named_at_its_end(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_other():\n    assert 1 == 2\n")
    assert done.returncode == 1
    assert done.stdout.endswith(
        "2 failed:\n  test_spark.py::test_flaky\n  test_others.py::test_other\n"
    )
    # Now the flaky one passes, and a part without tests is no success.
    done = run(tmp_path, "")
    assert done.returncode == 5
    assert done.stdout.endswith("the part 'others' failed with exit code 5\n")
    done = run(tmp_path, "def test_other():\n    pass\n")
    assert done.returncode == 0
    assert "failed" not in done.stdout
