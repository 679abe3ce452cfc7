"""Runs the tests: those that need Spark in one process, all others in a second one at the same
time.

Spark's tests wait for Spark more than they compute, and the others need no JVM, so that on two cores
they take little time from each other. With arguments, one process runs what they select.

The run fails if any test fails. Its last lines name the tests that failed, so that a log that was
cut at its head still says which they are.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest")
PARTS = {"spark": "spark", "others": "not spark"}


def main(arguments: list[str]) -> int:
    if arguments:
        return subprocess.call([*PYTEST, *arguments])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as caches:
        codes, failed = both_parts(Path(caches))
    print(f"all tests took {time.monotonic() - began:.0f} s")
    for part, code in codes.items():
        # A part that selects no test fails too: pytest says so with a code of its own.
        if code:
            print(f"the part {part!r} failed with exit code {code}")
    if failed:
        print(f"{len(failed)} failed:", *failed, sep="\n  ")
    sys.stdout.flush()
    return max(map(abs, codes.values()))


def both_parts(caches: Path) -> tuple[dict[str, int], list[str]]:
    """The exit code of each part, and the tests that failed in either."""
    commands = [
        [*PYTEST, "-m", marker, "-o", f"cache_dir={caches / part}"]
        for part, marker in PARTS.items()
    ]
    with tempfile.TemporaryFile() as output:
        others = subprocess.Popen(commands[1], stdout=output, stderr=subprocess.STDOUT)
        try:
            codes = [subprocess.call(commands[0]), others.wait()]
        finally:
            others.kill()
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    failed = [test for part in PARTS for test in failures(caches / part)]
    return dict(zip(PARTS, codes, strict=True)), failed


def failures(cache: Path) -> list[str]:
    """What pytest noted in its cache as failed; it writes the file only where something failed."""
    noted = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(noted.read_text())) if noted.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
