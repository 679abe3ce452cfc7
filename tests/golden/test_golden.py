"""Golden cases: a query and its algebra, plan and answers, in files that a reviewer reads.

A `*.case` file starts with a sentence on what it shows. Then come sections, each under a heading
`--- name`. The section `query` is the input; its heading may go on with options, as in
`--- query dialect=cqels2 allow=FROM base=http://x/`. Every other section is compared with what
its producer below makes of the query; `pytest --update-golden` rewrites them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.render import render
from quadweir.entailment.draw import epsilon_text
from quadweir.entailment.epsilon import EpsilonNetwork
from quadweir.entailment.needs import needs_of
from quadweir.entailment.table import Table
from quadweir.errors import QuadweirError
from quadweir.optimize.pipeline import optimize
from quadweir.sources.schemafiles import read_schema
from quadweir.spans import excerpt
from quadweir.syntax import parse
from query_sections import SECTIONS
from rendered_trees import read_query

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.glob("*.case"))
_HEADING = re.compile(r"^--- (\w[\w -]*?)((?: \w+=\S+)*)$", re.MULTILINE)

Options = dict[str, str]


def ask(text: str, options: Options) -> ContinuousQuery:
    return parse(
        text,
        dialect=options.get("dialect"),
        base=options.get("base"),
        allow=tuple(options.get("allow", "").split(",")),
    )


def algebra(text: str, options: Options) -> str:
    query = ask(text, options)
    rendered = render(query)
    assert read_query(rendered) == query
    return rendered


def optimized(text: str, options: Options) -> str:
    return render(optimize(ask(text, options)).query)


def error(text: str, options: Options) -> str:
    try:
        ask(text, options)
    except QuadweirError as problem:
        assert problem.span is not None
        return f"{problem.code} {problem}\n{excerpt(text, problem.span)}\n"
    return "no error\n"


def epsilon(text: str, options: Options) -> str:
    """The epsilon networks of the schema that the option `schema` names, from the root of the repository."""
    schema, warnings = read_schema([FOLDER.parents[1] / options["schema"]])
    assert warnings == []
    reduced = Table.of(schema, needs_of(ask(text, options)))
    return epsilon_text(EpsilonNetwork.full(schema), EpsilonNetwork.reduced(reduced))


PRODUCERS: dict[str, Callable[[str, Options], str]] = {
    "algebra": algebra,
    "optimized": optimized,
    "error": error,
    "epsilon": epsilon,
    **SECTIONS,
}


def read_sections(text: str) -> tuple[str, list[tuple[str, Options, str]]]:
    """Cut a case into its introduction and its sections."""
    headings = list(_HEADING.finditer(text))
    intro = text[: headings[0].start()]
    sections = []
    for heading, after in zip(headings, [*headings[1:], None], strict=True):
        end = after.start() if after is not None else len(text)
        options = dict(option.split("=", 1) for option in heading[2].split())
        sections.append((heading[1], options, text[heading.end() + 1 : end]))
    return intro, sections


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    intro, sections = read_sections(path.read_text("utf-8"))
    assert intro.strip(), "a case says what it shows"
    (name, options, query), *expected = sections
    assert name == "query"
    assert expected, "a case shows something"
    # The blank line before the next heading belongs to the layout, not to the query.
    query = query.rstrip("\n") + "\n"
    made = [(name, PRODUCERS[name](query, options)) for name, _, _ in expected]
    if request.config.getoption("--update-golden"):
        given = "".join(f" {key}={value}" for key, value in options.items())
        parts = [f"{intro.strip()}\n", f"--- query{given}\n{query}"]
        parts += [f"--- {name}\n{text}" for name, text in made]
        path.write_text("\n".join(parts), "utf-8")
        return
    for (name, _, text), (_, now) in zip(expected, made, strict=True):
        assert now.rstrip("\n") == text.rstrip("\n"), f"section {name}; see --update-golden"
