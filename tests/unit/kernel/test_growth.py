"""Tables that grow while results refer to their rows: a quiet stream, then a burst."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from properties.test_kernel import by_the_kernel
from quadweir.algebra.streams import OutputOperator
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.testing import MemoryStream, Oracle, diff_answers

# Rows of a table lie where their numbers fall; by the time of the burst, numbers are far beyond the
# number of places, so that growing moves every row.
QUIET = 60
BODIES = {
    "ends known": "STREAM <urn:s> [RANGE 100ms] { ?x <urn:p> ?y } "
    "STREAM <urn:s> [RANGE 60ms] { ?z <urn:q> ?x }",
    "ends not known": "STREAM <urn:s> [RANGE 100ms] { ?x <urn:p> ?y } "
    "STREAM <urn:s> [TRIPLES 150] { ?z <urn:q> ?x }",
    "copies": "STREAM <urn:s> [RANGE 100ms] { ?x <urn:p> ?y } "
    "OPTIONAL { STREAM <urn:s> [RANGE 200ms] { ?z <urn:q> ?x } } "
    "STREAM <urn:s> [RANGE 70ms] { ?k <urn:q> ?x }",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_burst_after_a_quiet_time_loses_no_answer(body: str) -> None:
    dice = random.Random(5)
    stream = MemoryStream("urn:s")
    for number in range(130):
        time = number * 30 if number < QUIET else QUIET * 30 + number
        stream.add(
            time,
            f"<urn:a{dice.randrange(30)}> <urn:p> {number} . "
            f"<urn:b{number}> <urn:q> <urn:a{dice.randrange(30)}> .",
        )
    feed = list(stream)
    query = replace(parse(f"SELECT ?x ?y ?z {{ {body} }}"), output=OutputOperator.DSTREAM)
    expected = Oracle(query).answers(feed)
    assert expected
    for size in (1, 7, 40):
        found, _ = by_the_kernel(optimize(query).query, feed, [], steps=[size])
        assert diff_answers(expected, found) == ""
