"""Runs the tests: those that need Spark in one process, all others in a second one beside it.

Spark's tests wait for Spark more than they compute, and the others need no JVM, so that on two cores
they take little time from each other. With arguments, one process runs what they select.
"""

import subprocess
import sys
import tempfile
import time

PYTEST = (sys.executable, "-m", "pytest")


def main(arguments: list[str]) -> int:
    if arguments:
        return subprocess.call([*PYTEST, *arguments])
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        others = subprocess.Popen(
            [*PYTEST, "-m", "not spark"], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            codes = [subprocess.call([*PYTEST, "-m", "spark"]), others.wait()]
        finally:
            others.kill()
        output.seek(0)
        sys.stdout.buffer.write(output.read())
    print(f"all tests took {time.monotonic() - began:.0f} s", flush=True)
    # A part that selects no test fails too: pytest says so with a code of its own.
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
