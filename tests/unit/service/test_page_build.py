"""The built page belongs to its sources, is small, and asks nobody but the service."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

REPO = Path(__file__).parents[3]
SOURCES = REPO / "page"
BUILT = REPO / "src" / "quadweir" / "service" / "page"
# As build.mjs lists them.
PARTS = (
    "build.mjs", "index.html", "icon.svg", "package.json", "package-lock.json", "tsconfig.json", "src",
)  # fmt: skip
MOST_BYTES = 1_500_000
# Names of vocabularies and of XML are written as addresses, and nobody asks for them.
NAMES = re.compile(
    r"https?://(www\.w3\.org|example\.org|www\.opengis\.net|xmlns\.com|schema\.org|purl\.org|qudt\.org|w3id\.org)/"
)


def files_of(path: Path) -> list[Path]:
    return sorted(path.rglob("*")) if path.is_dir() else [path]


def test_the_build_is_of_these_sources() -> None:
    files = [each for part in PARTS for each in files_of(SOURCES / part) if each.is_file()]
    lines = sorted(
        f"{each.relative_to(SOURCES).as_posix()} {hashlib.sha256(each.read_bytes()).hexdigest()}\n"
        for each in files
    )
    now = hashlib.sha256("".join(lines).encode()).hexdigest()
    built = (BUILT / "sources.sha256").read_text().strip()
    assert built == now, "the page was changed and not built: run `make page` and commit the result"


def test_index_names_the_assets_that_there_are() -> None:
    index = (BUILT / "index.html").read_text()
    named = set(re.findall(r'(?:src|href)="([^"]+)"', index))
    assert named == {each.relative_to(BUILT).as_posix() for each in (BUILT / "assets").iterdir()}
    assert all(re.search(r"-[A-Za-z0-9]{8}\.", name) for name in named), "names carry a hash"
    assert "<script>" not in index
    assert "style=" not in index


def test_the_page_is_small() -> None:
    size = sum(each.stat().st_size for each in BUILT.rglob("*") if each.is_file())
    assert size < MOST_BYTES


def test_the_page_names_no_other_host() -> None:
    for file in BUILT.rglob("*.*"):
        text = NAMES.sub("", file.read_text(encoding="utf-8"))
        found = re.findall(r"""["'`(](https?:)?//[a-z0-9.-]+\.[a-z]{2,}""", text)
        assert not found, f"{file.name}: {found}"
        assert "@import" not in text


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    assert all("resolved" not in each for each in lock["packages"].values())
    assert all("integrity" in each for name, each in lock["packages"].items() if name)
