"""Runs the tests: those that need Spark in one process, all others in a second one beside it.

Spark's tests wait for Spark more than they compute, and the others need no JVM, so that on two cores
they take little time from each other. With arguments, one process runs what they select.

A few failed tests are run a second time, alone: what fails again fails the run; what passes is
named at the end, for somebody to mend, but a machine that stalled beside them fails nobody's work.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest")
PARTS = {"spark": "spark", "others": "not spark"}
SOME_FAILED = 1
FEW = 5


def main(arguments: list[str]) -> int:
    if arguments:
        return subprocess.call([*PYTEST, *arguments])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as caches:
        codes, failed = both_parts(Path(caches))
        code = next((code for code in codes if code), 0)
        if failed and len(failed) <= FEW and set(codes) <= {0, SOME_FAILED}:
            print("\nrunning what failed a second time, alone:", flush=True)
            code = subprocess.call([*PYTEST, *failed])
            if not code:
                print("failed at first, passed alone:", *failed, sep="\n  ")
        elif failed:
            print("failed:", *failed[:20], sep="\n  ")
    print(f"all tests took {time.monotonic() - began:.0f} s", flush=True)
    # A part that selects no test fails too: pytest says so with a code of its own.
    return code


def both_parts(caches: Path) -> tuple[list[int], list[str]]:
    """The exit codes of both parts, and the tests that failed in either."""
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
    return codes, [test for part in PARTS for test in failures(caches / part)]


def failures(cache: Path) -> list[str]:
    """What pytest noted in its cache as failed; it writes the file only where something failed."""
    noted = cache / "v" / "cache" / "lastfailed"
    return list(json.loads(noted.read_text())) if noted.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
