"""Everything public comes from `quadweir`: pages and examples import nothing else of ours."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import quadweir
from pages import PAGES, ROOT, blocks, name_of

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def texts() -> list[tuple[str, str]]:
    """Python blocks of all pages, and all examples, with a name for each."""
    found = [
        (f"{name_of(page)} {number}", block)
        for page in PAGES
        for number, block in enumerate(blocks(page, "python"))
    ]
    return found + [(name_of(each), each.read_text(encoding="utf-8")) for each in EXAMPLES]


@pytest.mark.parametrize(("name", "text"), texts(), ids=[name for name, _ in texts()])
def test_only_public_names_are_imported(name: str, text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quadweir"):
            assert node.module == "quadweir"
            assert {each.name for each in node.names} <= set(quadweir.__all__)
        elif isinstance(node, ast.Import):
            assert not any(each.name.startswith("quadweir.") for each in node.names)


def test_the_three_lists_of_public_names_agree() -> None:
    tree = ast.parse(Path(quadweir.__file__).read_text(encoding="utf-8"))
    typed = {
        (name.name, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quadweir.")
        for name in node.names
        if name.name != "__version__"
    }
    assert typed == set(quadweir._HOME.items())
    assert {*quadweir._HOME, "__version__"} == set(quadweir.__all__)


def test_every_public_name_is_there() -> None:
    for name in quadweir.__all__:
        assert getattr(quadweir, name) is not None
    assert set(quadweir.__all__) <= set(dir(quadweir))
    with pytest.raises(AttributeError, match="nothing"):
        quadweir.nothing  # noqa: B018


def test_the_package_is_imported_without_anything_heavy() -> None:
    code = (
        "import sys, quadweir; quadweir.IRI, quadweir.QuadweirError, quadweir.FileSource\n"
        "print({'pyspark', 'pandas', 'pyarrow', 'numpy', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
