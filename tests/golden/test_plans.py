"""Plans that a reviewer reads: of every benchmark query in each dialect, and of every kind of join.

`pytest --update-golden` rewrites the files in `plans/`. If a dialect cannot express a query, the
file says so instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.errors import QuadweirError
from quadweir.plan.explanation import planned
from quadweir.syntax import detect, parse
from quadweir.syntax.write import TARGETS, declared_prefixes, write

FOLDER = Path(__file__).parent / "plans"
QUERIES = Path(__file__).parents[2] / "src/quadweir/bench/queries"
LSBENCH = sorted(each.name for each in (QUERIES / "lsbench/cqels").glob("*.rq"))
OTHERS = sorted([*(QUERIES / "srbench").glob("*.rq"), *QUERIES.glob("*.rq")])

V = "WINDOW <urn:v> { ?x <urn:p> ?y }"
W = "WINDOW <urn:w> { ?y <urn:q> ?z }"
JOINS = {
    "two windows": f"{V} {W}",
    "two windows and a filter between them": f"{V} {W} FILTER(?x != ?z)",
    "windows that share nothing": f"{V} WINDOW <urn:w> {{ ?a <urn:q> ?z }}",
    "a window and static data": f"{V} ?y <urn:r> ?z",
    "a window and values": f"{V} VALUES ?y {{ <urn:one> <urn:two> }}",
    "the same pattern twice": f"{V} WINDOW <urn:v> {{ ?y <urn:p> ?z }}",
    "optional": f"{V} OPTIONAL {{ {W} }}",
    "optional with a condition": f"{V} OPTIONAL {{ {W} FILTER(?x != ?z) }}",
    "optional static data": f"{V} OPTIONAL {{ ?y <urn:r> ?z }}",
    "minus": f"{V} MINUS {{ {W} }}",
    "minus static data": f"{V} MINUS {{ ?y <urn:r> ?z }}",
    "minus what may be unbound": f"{V} MINUS {{ {V} OPTIONAL {{ {W} }} }}",
    "exists": f"{V} FILTER EXISTS {{ {W} }}",
    "not exists": f"{V} FILTER NOT EXISTS {{ {W} }}",
    "not exists with a condition": f"{V} FILTER NOT EXISTS {{ {W} FILTER(?x != ?z) }}",
    "union": f"{{ {V} }} UNION {{ {W} }}",
    "a path": "WINDOW <urn:v> { ?x <urn:p>+ ?y }",
    "a join of groups": f"{V} {{ SELECT ?y (COUNT(*) AS ?n) {{ {W} }} GROUP BY ?y }}",
    "evaluated from scratch": f"{V} FILTER(EXISTS {{ {W} }} || ?x = <urn:one>)",
}
HEADS = {
    "eager": "REGISTER ISTREAM <urn:out> AS SELECT *",
    "periodic": "REGISTER RSTREAM <urn:out> AS SELECT *",
}
WINDOWS = {
    "eager": "[RANGE PT5S]",
    "periodic": "[RANGE PT5S STEP PT1S]",
}


def in_each_dialect(text: str, own: str) -> str:
    """The plan of a query in its own dialect, and as it is translated to the others."""
    parts = [f"--- {own}\n{planned(parse(text, dialect=own, allow=('FROM',)))}"]
    parts += [translated(text, own, target) for target in TARGETS if target != own]
    return "\n".join(parts)


def translated(text: str, own: str, target: str) -> str:
    """The plan of a query in another dialect, or why it cannot be written there."""
    query = parse(text, dialect=own, allow=("FROM",))
    try:
        written = write(query, target, prefixes=declared_prefixes(text)).text
        found = planned(parse(written, dialect=target, allow=("FROM",)))
    except QuadweirError as problem:
        found = f"{problem.code} {problem.message}\n"
    return f"--- {target}\n{found}"


def compare(name: str, made: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{name}.plan"
    if request.config.getoption("--update-golden"):
        file.write_text(made, "utf-8")
        return
    assert made == file.read_text("utf-8"), "see --update-golden"


@pytest.mark.parametrize("name", LSBENCH)
def test_lsbench(name: str, request: pytest.FixtureRequest) -> None:
    parts = []
    for folder in ("cqels", "csparql", "rspql"):
        text = (QUERIES / "lsbench" / folder / name).read_text("utf-8")
        parts.append(f"--- {folder}\n{planned(parse(text, dialect=folder, allow=('FROM',)))}")
    text = (QUERIES / "lsbench" / "cqels" / name).read_text("utf-8")
    parts.append(translated(text, "cqels", "sparqlstream"))
    compare(f"lsbench-{name.removesuffix('.rq')}", "\n".join(parts), request)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_others(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text("utf-8")
    folder = "" if path.parent == QUERIES else f"{path.parent.name}-"
    compare(f"{folder}{path.stem}", in_each_dialect(text, detect(text)), request)


@pytest.mark.parametrize("when", HEADS)
def test_joins(when: str, request: pytest.FixtureRequest) -> None:
    declared = "".join(
        f" FROM NAMED WINDOW <urn:{name}> ON <urn:{stream}> {WINDOWS[when]}"
        for name, stream in (("v", "s"), ("w", "t"))
    )
    parts = [
        f"--- {name}\n{planned(parse(f'{HEADS[when]}{declared} WHERE {{ {body} }}'))}"
        for name, body in JOINS.items()
    ]
    compare(f"joins-{when}", "\n".join(parts), request)
