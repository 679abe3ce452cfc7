"""Every test that the semantics page names is there, and every rule's test is on the page."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "semantics.md"
NAME = re.compile(r"\btest_\w+")
RULE = re.compile(r"\btest_[SWRAE]\d+_\w+")


def test_the_page_and_the_tests_name_each_other():
    named = set(NAME.findall(PAGE.read_text(encoding="utf-8")))
    there = set()
    for file in TESTS.rglob("test_*.py"):
        there |= set(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    assert named - there == set(), "named on the page, but not there"
    rules = {name for name in there if RULE.fullmatch(name)}
    assert rules - named == set(), "pins a rule, but is not on the page"


def test_every_rule_of_meaning_is_pinned():
    page = PAGE.read_text(encoding="utf-8")
    rules = re.split(r"^\*\*([A-Z]\d+)\.\*\*", page, flags=re.MULTILINE)[1:]
    pinned = {rule for rule, text in zip(rules[::2], rules[1::2], strict=True) if "`test_" in text}
    meaning = {rule for rule in rules[::2] if rule[0] in "SWRA"}
    assert meaning == {
        *(f"S{n}" for n in range(1, 6)),
        *(f"W{n}" for n in range(1, 12)),
        *(f"R{n}" for n in range(1, 5)),
        *(f"A{n}" for n in range(1, 7)),
    }
    assert meaning - pinned == set()
