"""Every test that the security page names is there, and every promise names one."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_test_that_is_named_is_there():
    named = NAMED.findall(PAGE)
    assert named
    gone = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).is_file()
        or not re.search(rf"^\s*def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert gone == []


def test_every_promise_names_a_test():
    promises = re.split(r"^- ", PAGE.partition("\n## Files\n")[2], flags=re.MULTILINE)[1:]
    assert len(promises) > 20
    assert [promise for promise in promises if not NAMED.search(promise)] == []
