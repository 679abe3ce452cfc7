"""Links between pages lead somewhere, and the commands that pages show exist."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from quadweir.cli import VERBS, build
from quadweir.errors import QuadweirError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_outside_code(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a heading is called in a link, by the rule that forges share."""
    headings = re.findall(r"^#+ (.+)$", text_outside_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in LINK.findall(text_outside_code(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(linked), f"{target}: no such heading"


def test_every_page_is_reachable_from_the_first():
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in LINK.findall(text_outside_code(page)):
            linked = (page.parent / target.partition("#")[0]).resolve()
            if linked.suffix == ".md" and linked.is_file() and not target.startswith("http"):
                todo.append(linked)
    assert [name_of(page) for page in PAGES if page not in seen] == []


def commands() -> list[tuple[str, str]]:
    """Every command in a block marked `console`, with the page it stands on.

    Where a block has prompts, the lines without one are what the commands print.
    """
    found = []
    for page in PAGES:
        for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "console":
                lines = block.replace("\\\n", " ").splitlines()
                if any(line.startswith("$ ") for line in lines):
                    lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
                found += [(name_of(page), line.strip()) for line in lines if line.strip()]
    return found


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_on_pages_exist(page, line, tmp_path, monkeypatch):
    words = shlex.split(line, comments=True)
    match words:
        case ["make", *arguments]:
            targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert [word for word in arguments if "=" not in word and word not in targets] == []
        case [program, *arguments] if program.removeprefix(".venv/bin/") == "quadweir":
            monkeypatch.chdir(tmp_path)
            check_arguments(arguments)
        case _:
            assert words[0] in ("git", "cd", "ls", "head", "cat", "source", "mkdir"), line


def check_arguments(arguments: list[str]) -> None:
    """Parse as the command line would, without running anything."""
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    if chosen is None:
        assert arguments in (["--help"], ["--version"])
        return
    assert chosen in [verb.name for verb in VERBS]
    # Files that an earlier command on the page would have made; redirections are the shell's.
    end = next((i for i, word in enumerate(arguments) if word in (">", "|", "&")), len(arguments))
    arguments = arguments[:end]
    for word in arguments:
        if "/" in word or re.search(r"\.\w+$", word):
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            Path(word).touch()
    command = typer.main.get_command(build(chosen))
    context = None
    name = "quadweir"
    while True:
        try:
            context = command.make_context(name, list(arguments), parent=context)
        except QuadweirError as error:
            raise AssertionError(str(error)) from error
        if not hasattr(command, "resolve_command"):
            return
        rest = [*context._protected_args, *context.args]
        name, command, arguments = command.resolve_command(context, rest)
