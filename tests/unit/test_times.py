"""Durations and instants as callers of the Python API give them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from quadweir.errors import UsageError
from quadweir.times import as_duration, as_instant


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        ("10s", 10_000),
        ("500ms", 500),
        ("0s", 0),
        (" 2h ", 7_200_000),
        ("10 seconds", 10_000),
        ("1 second", 1_000),
        ("5 minutes", 300_000),
        ("3 days", 259_200_000),
        ("250 milliseconds", 250),
        ("PT10S", 10_000),
        ("PT1M0.5S", 60_500),
        ("P1DT2H", 93_600_000),
        (timedelta(minutes=1), 60_000),
    ],
)
def test_durations(given: timedelta | str, milliseconds: int) -> None:
    assert as_duration(given) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize(
    "given", ["", "10", "10 parsecs", "P", "PT", "P1M", "-1s", timedelta(-1), 10, None, "1e3s"]
)
def test_what_is_no_duration_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        as_duration(given)  # type: ignore[arg-type]


def test_instants() -> None:
    zone = timezone(timedelta(hours=1))
    assert as_instant(datetime(1970, 1, 1, 1, tzinfo=zone)) == 0
    assert as_instant(datetime(1970, 1, 2)) == as_instant(datetime(1970, 1, 2, tzinfo=UTC))
    assert as_instant("1970-01-01T00:00:01Z") == as_instant("1000") == as_instant(1000)
    with pytest.raises(UsageError, match="not an event time: noon"):
        as_instant("noon")
