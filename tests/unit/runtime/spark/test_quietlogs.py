"""Which messages of Spark's Python processes are shown."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from quadweir.runtime.spark import quietlogs
from quadweir.runtime.spark.quietlogs import Sieve

GONE = """Traceback (most recent call last):
  File "/x/pyspark/serializers.py", line 602, in read_int
    return self._sock.recv_into(b)
ConnectionResetError: [Errno 104] Connection reset by peer

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/pyspark/worker_util.py", line 253, in get_sock_file_to_executor
BrokenPipeError: [Errno 32] Broken pipe
"""
# A reader of a stream that waits for its next request when Java closes the connection.
ENDED = """Traceback (most recent call last):
  File "/x/pyspark/serializers.py", line 604, in read_int
EOFError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/pyspark/worker_util.py", line 253, in get_sock_file_to_executor
BrokenPipeError: [Errno 32] Broken pipe
"""
ENDED_EARLY = """Traceback (most recent call last):
  File "/x/pyspark/serializers.py", line 604, in read_int
EOFError
"""
OWN = """Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 1, in main
BrokenPipeError: [Errno 32] Broken pipe

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/own.py", line 3, in clean
ValueError: not a number
"""
NOT_SPARKS = """Traceback (most recent call last):
  File "/home/own.py", line 3, in send
BrokenPipeError: [Errno 32] Broken pipe
"""


def heard(text: str) -> str:
    sieve = Sieve()
    lines = [kept for line in text.splitlines() for kept in sieve.take(line)]
    return "".join(f"{line}\n" for line in (*lines, *sieve.rest()))


def test_announcements_are_not_heard_and_what_users_print_is():
    announced = "Starting Streaming TransformWithStateInPandas Python worker.\n\n"
    assert heard(announced + "mine\n\n" + announced + "\nmine too\n") == "mine\n\nmine too\n"


def test_a_process_whose_java_is_gone_is_not_heard_of():
    assert heard("before\n" + GONE + "after\n") == "before\nafter\n"
    assert heard("before\n" + ENDED + "after\n") == "before\nafter\n"


def test_other_tracebacks_are_heard_whole():
    assert heard(OWN) == OWN
    assert heard(ENDED_EARLY) == ENDED_EARLY
    assert heard(NOT_SPARKS + "after\n") == NOT_SPARKS + "after\n"
    assert heard(GONE + OWN + GONE + NOT_SPARKS) == OWN + NOT_SPARKS


@given(st.lists(st.booleans(), min_size=20, max_size=20))
def test_tracebacks_of_two_processes_are_separated(turns):
    def mixed_lines(*texts: str) -> str:
        """Mix lines of two processes."""
        one, other = (text.splitlines() for text in texts)
        mixed = [(one if turn else other).pop(0) for turn in turns if (one if turn else other)]
        return "".join(f"{line}\n" for line in (*mixed, *one, *other))

    assert heard("before\n" + mixed_lines(GONE, GONE) + "after\n") == "before\nafter\n"
    # Some lines of the traceback may be lost, but not its error.
    assert {*OWN.splitlines()[-2:]} <= {*heard(mixed_lines(OWN, GONE)).splitlines()}


def test_a_pipe_is_read_to_its_end(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(quietlogs, "_say", said.extend)
    reading, writing = os.pipe()
    os.write(writing, ("ä\n" + GONE + "half").encode())
    os.close(writing)
    quietlogs._pass_on(reading)
    assert said == ["ä", "half"]


def test_what_is_cut_off_by_the_end_of_java_is_not_heard(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(quietlogs, "_say", said.extend)
    lines = GONE.splitlines(keepends=True)
    mine = 'Traceback (most recent call last):\n  File "/home/own.py", line 3, in send\n'
    for cut in (lines[:1], lines[:3], [*lines, "Traceback (most recent call last):\n"], [mine]):
        reading, writing = os.pipe()
        os.write(writing, "".join(cut).encode())
        os.close(writing)
        quietlogs._pass_on(reading)
    assert said == mine.splitlines()
