"""Why a Spark query ended, if its author or operator can act."""

from __future__ import annotations

import re
from typing import Final

from quadweir.errors import SourceError

_OURS: Final = re.compile(r"quadweir\.errors\.SourceError: (.+(?:\n(?!\s*at |==|\s*$).+)*)")
_KAFKA_LOST: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network)\w*Exception: ?(.*)"
)
_DATA_LOSS: Final = re.compile(r"data (?:may have been|was) lost|KAFKA_DATA_LOSS", re.IGNORECASE)


def explain_failure(error: BaseException) -> SourceError | None:
    """Turn the exception that ended a query into one that says what to do, if a source is why.

    Args:
        error: what `StreamingQuery.exception()` gives or `awaitTermination` raises.
    """
    if isinstance(error, SourceError):
        return error
    text = str(error)
    if match := _OURS.search(text):
        message, *rest = match[1].strip().splitlines()
        hint = next((line.removeprefix("Hint: ") for line in rest if "Hint: " in line), None)
        detail = next((line for line in rest if "Hint: " not in line), None)
        return SourceError(message, detail=detail, hint=hint)
    if _DATA_LOSS.search(text):
        return SourceError(
            "Kafka no longer holds messages that the stream had still to read",
            detail=text.strip().splitlines()[0][:500],
            hint='Lengthen the topic\'s retention; to continue without them, set "failOnDataLoss" '
            "to false in the options of the source.",
        )
    if match := _KAFKA_LOST.search(text):
        return SourceError(
            "the Kafka broker is gone, or answers too slowly",
            detail=match[1] or None,
            hint="Bring the broker back and start the query again with the same checkpoint: it "
            "continues where it stopped.",
        )
    return None
