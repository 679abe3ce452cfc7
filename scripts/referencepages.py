"""Write the reference pages of the Python API from docstrings: `docs/reference/python/`.

    python scripts/referencepages.py          writes the pages
    python scripts/referencepages.py --check  says which are not up to date

A test runs the check.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import quadweir

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python"
COLUMNS = 118
GROUPS = {
    "engine": (
        "The engine",
        "Engine StreamBuilder MappedQuads register_formats",
    ),
    "queries": (
        "Queries and networks",
        "RegisteredQuery Network NetworkAnswer QueryText Windowing ReportOn Schema",
    ),
    "client": (
        "A client of the service",
        "Client ServedAnswer RefusedError",
    ),
    "streams": (
        "Streams and sources",
        "StreamDeclaration FileSource FolderSource ReplaySource KafkaSource TcpSource MqttSource "
        "Format Envelope Arrival FromColumn FromPredicate Speed Rate Burst read_elements",
    ),
    "sinks": (
        "Sinks",
        "Sink Batch FileSink KafkaSink ConsoleSink MemorySink Call LineFormat write_rdf",
    ),
    "data": (
        "Terms, mappings and schemas of rows",
        "IRI BlankNode Literal TripleTerm Quad Mapping QUAD_SCHEMA STATEMENT_SCHEMA "
        "DEAD_LETTER_SCHEMA",
    ),
    "functions": (
        "Your own functions and window policies",
        "register Kind Parameter Output register_policy Policy Subwindow Next",
    ),
    "errors": (
        "Errors",
        "QuadweirError DataError DeclarationError EnvironmentProblem InternalError LimitError "
        "MappingError NotImplementedYetError PlanError QuerySyntaxError SourceError StateError "
        "UnboundedStateError UnsupportedError UsageError",
    ),
}
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples):\s*$")
ITEM = re.compile(r"^(\*{0,2}\w+): ?(.*)$")


def pages() -> dict[str, str]:
    """Return the text of each page, by its name."""
    grouped = {name for _, names in GROUPS.values() for name in names.split()}
    missing = sorted(
        {*quadweir.__all__} - grouped - {"__version__"} | grouped - {*quadweir.__all__}
    )
    if missing:
        sys.exit(f"no page, or no public name: {', '.join(missing)}; see GROUPS in {__file__}")
    found = {"README.md": overview()}
    for group, (title, names) in GROUPS.items():
        parts = [f"# {title}", "Made from the docstrings by `scripts/referencepages.py`."]
        for name in names.split():
            parts += list(described(name))
        found[f"{group}.md"] = "\n\n".join(parts) + "\n"
    return found


def overview() -> str:
    lines = ["# The Python API", "", "Everything public is exported from `quadweir`.", ""]
    for group, (title, names) in GROUPS.items():
        shown = ", ".join(f"`{name}`" for name in names.split())
        lines += wrapped(f"- [{title}]({group}.md): {shown}", later="  ")
    return "\n".join(lines) + "\n"


def described(name: str) -> Iterator[str]:
    found = getattr(quadweir, name)
    yield f"## {name}"
    if not isinstance(found, type) and not callable(found):
        yield f"A `{type(found).__name__}`:"
        yield "\n".join(f"- `{each.name}`: {each.dataType.simpleString()}" for each in found.fields)
        return
    is_enum = isinstance(found, type) and issubclass(found, enum.Enum)
    if not is_enum:
        yield code(f"{name}{signature(found)}")
    yield from prose(found)
    if is_enum:
        yield "\n".join(f"- `{each.name}` = `{each.value!r}`" for each in found)
    elif isinstance(found, type):
        yield from members(name, found)


def members(owner: str, found: type) -> Iterator[str]:
    fields = {each.name for each in dataclasses.fields(found)} if is_record(found) else set()
    for name in sorted({*dir(found)} - fields):
        kept = inspect.getattr_static(found, name)
        home = next((each for each in found.__mro__ if name in vars(each)), object)
        # What a public class has is described there; what is inherited from others, here.
        is_own = home is found or (
            home.__module__.startswith("quadweir")
            and home.__name__ not in quadweir.__all__
            and bool(kept.__doc__)
        )
        if name.startswith("_") or not is_own:
            continue
        if isinstance(kept, property):
            yield f"### {owner}.{name}"
            yield from prose(kept)
        elif isinstance(kept, classmethod | staticmethod) or inspect.isfunction(kept):
            yield f"### {owner}.{name}()"
            yield code(f"{name}{signature(getattr(found, name))}")
            yield from prose(getattr(found, name))


def is_record(found: type) -> bool:
    return dataclasses.is_dataclass(found)


def signature(found: Any) -> str:
    said = inspect.signature(found)
    shown = []
    is_named = False
    for each in said.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not is_named:
            is_named = True
            shown.append("*")
        is_named = is_named or each.kind is each.VAR_POSITIONAL
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        text = star + each.name
        if each.annotation is not each.empty:
            text += f": {annotation(each.annotation)}"
        if each.default is not each.empty:
            text += f" = {default(each.default)}"
        shown.append(text)
    back = "" if isinstance(found, type) else f" -> {annotation(said.return_annotation)}"
    line = f"({', '.join(shown)}){back}"
    if len(line) <= COLUMNS - 40:
        return line
    inside = "".join(f"    {each},\n" for each in shown)
    return f"(\n{inside}){back}"


def annotation(found: Any) -> str:
    return found if isinstance(found, str) else getattr(found, "__name__", str(found))


def default(found: Any) -> str:
    if isinstance(found, enum.Enum):
        return f"{type(found).__name__}.{found.name}"
    text = repr(found)
    # What a default looks like must not depend on the machine.
    return "..." if text.startswith(("<", "datetime.timedelta(days=-1")) else text


def code(text: str) -> str:
    return f"```text\n{text}\n```"


def prose(found: Any) -> Iterator[str]:
    """Return a docstring as Markdown: sections become lists, examples become blocks."""
    text = inspect.cleandoc(found.__doc__ or "")
    if isinstance(found, type) and text.startswith(f"{found.__name__}("):
        return  # A dataclass without a docstring has its signature.
    lines = text.splitlines()
    place = 0
    waiting: list[str] = []
    while place < len(lines):
        line = lines[place]
        section = SECTION.match(line)
        if section:
            yield from paragraphs(waiting)
            waiting = []
            body, place = indented(lines, place + 1)
            yield f"{section[1]}:"
            yield from listed(body)
        elif line.startswith(">>>"):
            yield from paragraphs(waiting)
            waiting = []
            block = []
            while place < len(lines) and lines[place].strip():
                block.append(lines[place])
                place += 1
            yield "```pycon\n" + "\n".join(block) + "\n```"
        elif line.startswith("    ") and not "".join(waiting[-1:]).strip():
            yield from paragraphs(waiting)
            waiting = []
            body, place = indented(lines, place)
            yield "```text\n" + "\n".join(body).strip("\n") + "\n```"
        else:
            waiting.append(line)
            place += 1
    yield from paragraphs(waiting)


def indented(lines: list[str], place: int) -> tuple[list[str], int]:
    """Return the indented lines from a place, without their indentation, and where they end."""
    start = place
    while place < len(lines) and (not lines[place].strip() or lines[place].startswith("    ")):
        place += 1
    return textwrap.dedent("\n".join(lines[start:place])).strip("\n").splitlines(), place


def listed(body: list[str]) -> Iterator[str]:
    """Return the items of a section as a list; text that is no item stays text."""
    items: list[list[str]] = []
    for line in body:
        match = ITEM.match(line)
        if match and not line.startswith(" "):
            items.append([f"- `{match[1]}`: {match[2]}"])
        elif items:
            items[-1].append(line.strip())
        else:
            yield from paragraphs(body)
            return
    yield "\n".join(
        "\n".join(wrapped(" ".join(part for part in item if part), later="  ")) for item in items
    )


def paragraphs(lines: list[str]) -> Iterator[str]:
    for part in "\n".join(lines).split("\n\n"):
        text = " ".join(part.split())
        if text:
            yield "\n".join(wrapped(text))


def wrapped(text: str, *, later: str = "") -> list[str]:
    # A star or an underscore in a docstring is not Markdown; names are in backquotes.
    return textwrap.wrap(
        text, COLUMNS, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def main() -> None:
    found = pages()
    old = {each.name: each.read_text(encoding="utf-8") for each in FOLDER.glob("*.md")}
    stale = sorted(name for name in {*found, *old} if found.get(name) != old.get(name))
    if "--check" in sys.argv:
        if stale:
            sys.exit(f"not up to date: {', '.join(stale)}; run python scripts/referencepages.py")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in found:
            (FOLDER / name).write_text(found[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    print(f"{len(stale)} of {len(found)} pages written")


if __name__ == "__main__":
    main()
