"""Links between pages work, lines are short, and the commands on pages exist."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer

from pages import FENCE, PAGES, ROOT, commands, name_of
from quadweir.cli import VERBS, build
from quadweir.errors import QuadweirError

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def text_outside_code(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by the common rule of forges."""
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_is_longer_than_120_columns(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [n for n, line in enumerate(lines, start=1) if len(line) > 120] == []


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


@pytest.mark.parametrize(
    ("page", "line"), [(name_of(page), line) for page in PAGES for line in commands(page)]
)
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


def test_the_glossary_has_each_word_once_in_order():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)]
    assert words == sorted(set(words))


STEP = re.compile(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`:", re.MULTILINE)
WAYS = [
    part
    for part in (ROOT / "docs/architecture.md").read_text(encoding="utf-8").split("\n## ")
    if STEP.search(part)
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.splitlines()[0])
def test_a_way_through_the_code_is_short_and_exists(way: str) -> None:
    steps = STEP.findall(way)
    assert len(steps) == len(re.findall(r"^\d+\. ", way, re.MULTILINE)) <= 12
    modules = [module for module, _ in steps]
    assert len(set(modules)) == len(modules), "no module is visited twice"
    for module, function in steps:
        (file,) = (
            each
            for each in (ROOT / "src/quadweir").rglob("*.py")
            if str(each.relative_to(ROOT / "src/quadweir")) in (module, f"runtime/{module}")
        )
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for name in function.split("."):
            (found,) = (
                each
                for each in body
                if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == name
            )
            body = found.body
