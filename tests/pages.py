"""The pages of the repository, and the blocks of code on them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = ("docs", "examples", "scripts", "src", "tests")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for name in _FOLDERS for page in (ROOT / name).rglob("*.md"))]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page that are marked with a language, in their order."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [block for name, block in found if name == language]


def commands(page: Path) -> list[str]:
    """Every command in the blocks of a page that are marked `console`.

    Where a block has prompts, the lines without one are what the commands print.
    """
    found = []
    for block in blocks(page, "console"):
        lines = block.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found += [line.strip() for line in lines if line.strip()]
    return found
