from __future__ import annotations

import pytest

from quadweir.errors import SourceError
from quadweir.failures import explain_failure

OURS = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
  File "x.py", line 1, in latestOffset
    raise self._receiver.failure
quadweir.errors.SourceError: nobody answers at localhost:1
[Errno 111] Connection refused
Hint: Start the server.

\tat org.apache.spark.Some.thing(Some.scala:1)
"""


def test_our_own_errors_come_back_whole_from_sparks_text() -> None:
    found = explain_failure(RuntimeError(OURS))
    assert found is not None
    assert found.message == "nobody answers at localhost:1"
    assert found.detail == "[Errno 111] Connection refused"
    assert found.hint == "Start the server."


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("org.apache.kafka.common.errors.TimeoutException: Timed out", "same checkpoint"),
        ("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost", "retention"),
    ],
)
def test_kafkas_errors_say_what_to_do(text: str, hint: str) -> None:
    found = explain_failure(RuntimeError(f"java.lang.Exception: x\nCaused by: {text}\n\tat y"))
    assert found is not None and hint in str(found.hint)


def test_other_errors_are_left_alone() -> None:
    assert explain_failure(RuntimeError("division by zero")) is None
    error = SourceError("mine")
    assert explain_failure(error) is error
