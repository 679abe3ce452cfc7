"""Windows over a stream variable: optimised or not, the kernel gives the answers of the oracle."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from properties.dense import Feed, feeds
from properties.strategies import STREAMS, SUBJECTS
from properties.test_kernel import STEPS, by_the_kernel
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.testing import Oracle, diff_answers

# Streams with the names of subjects, so that patterns that name the variable find something.
NAMES = dict(zip(STREAMS, SUBJECTS, strict=False))

_PATTERNS = ["?a :p0 ?b", "?a :p1 ?c", "?b :p1 ?c", "?sv :p1 ?c", "?a :p0 ?sv", "?sv ?v ?c"]
_CONDITIONS = ["", "", "FILTER(?sv != ?c)", "FILTER(?a = ?sv)", "FILTER(?b != ?sv)"]
_WORDS = ["", "OPTIONAL", "OPTIONAL", "MINUS", "FILTER EXISTS", "FILTER NOT EXISTS"]


@st.composite
def questions(draw: st.DrawFn) -> str:
    """Patterns over `?sv` in one or two windows, some of them optional or negated."""
    window = f"STREAM ?sv [RANGE {draw(st.sampled_from([2, 5]))}ms]"
    # In CQELS-QL, the same scope over the same stream is the same window.
    other = draw(
        st.sampled_from([window, window, "STREAM ?sv [RANGE 3ms]", "STREAM ?sw [RANGE 2ms]"])
    )
    body = f"{window} {{ ?a :p0 ?b }}"
    for _ in range(draw(st.integers(1, 2))):
        pattern, condition = draw(st.sampled_from(_PATTERNS)), draw(st.sampled_from(_CONDITIONS))
        word = draw(st.sampled_from(_WORDS))
        inside = f"{other} {{ {pattern} }} {condition}"
        body += f" {word} {{ {inside} }}"
    head = draw(st.sampled_from(["SELECT ?sv ?a ?b ?c", "SELECT DISTINCT ?sv ?c", "SELECT *"]))
    return f"PREFIX : <http://example.org/>\n{head} WHERE {{ {body} }}"


@given(
    questions(), feeds(names=3), STEPS, st.sampled_from(Content), st.sampled_from(OutputOperator)
)
def test_the_kernel_gives_the_answers_of_the_oracle(
    text: str, feed: Feed, steps: list[int], content: Content, output: OutputOperator
) -> None:
    query = replace(parse(text, dialect="cqels", content=content), output=output)
    arrived = sorted(
        (replace(each, stream=NAMES[each.stream]) for each in feed),
        key=lambda each: each.event_time,
    )
    expected = Oracle(query).run(arrived)
    found, _ = by_the_kernel(optimize(query).query, arrived, [], steps=steps)
    assert diff_answers(expected.answers, found) == ""
