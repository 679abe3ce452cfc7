"""The queries of the benchmark of many queries: random constants and window lengths."""

from __future__ import annotations

import random
from typing import Final

from quadweir.bench.continuous import query_text
from quadweir.bench.socialstream import FIRST_USER

LENGTHS: Final = {"q04": "15s", "q05": "1m", "q10": "15s"}
"""The queries whose windows differ, and the lengths in their texts."""
_USER: Final = "u984"
_TEMPLATES: Final = ("q01", "q02", "q03", "q04", "q05", "q06", "q08", "q09", "q10", "q11", "q12")
"""Q7 reads the positions of users, which these streams do not have."""


def asking_of_users(count: int, users: int, seed: int) -> dict[str, str]:
    """LSBench's Q1 of random users, each asked of once if there are enough."""
    others = range(FIRST_USER + 1, FIRST_USER + max(users, count))
    # The first user is also in the small streams that answers are compared over.
    chosen = sorted([FIRST_USER, *random.Random(seed).sample(others, count - 1)])
    text = query_text("q01")
    return {f"q1-{user}": text.replace(_USER, f"u{user}") for user in chosen}


def of_lengths(name: str, count: int, seed: int) -> dict[str, str]:
    """An LSBench query with so many different window lengths, none longer than its own."""
    text, own = query_text(name), LENGTHS[name]
    longest = {"15s": 15_000, "1m": 60_000}[own]
    lengths = sorted(random.Random(seed).sample(range(1, longest + 1), count))
    lengths[-1] = longest
    return {f"{name}-{each}": text.replace(f"RANGE {own}", f"RANGE {each}ms") for each in lengths}


def drawn(count: int, users: int, seed: int) -> dict[str, str]:
    """Draw queries from LSBench's templates, in three dialects, with random users and lengths."""
    from importlib import resources

    source = random.Random(seed)
    base = resources.files("quadweir.bench") / "queries" / "lsbench"
    found = {}
    for number in range(count):
        name, dialect = source.choice(_TEMPLATES), source.choice(("cqels", "csparql", "rspql"))
        text = (base / dialect / f"{name}.rq").read_text(encoding="utf-8")
        asked = source.randrange(FIRST_USER, FIRST_USER + users)
        text = text.replace("u984", f"u{asked}").replace("p984", f"p{asked}")
        seconds = source.randint(1, 15)
        text = text.replace("15s", f"{seconds}s").replace("PT15S", f"PT{seconds}S")
        found[f"{dialect}-{name}-{number}"] = text
    return found
