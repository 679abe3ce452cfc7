"""Two types never share a name, so that a name in a docstring or an error means one thing."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import quadweir

SOURCES = Path(quadweir.__file__).parent

# Names that several classes may have, with the folders or modules of those classes.
_LAYERS = frozenset({"algebra", "plan", "kernel"})
_OPERATOR = "one operator of SPARQL: its meaning, its plan node and the operator that runs it"
SHARED = {
    "Closure": (_LAYERS, _OPERATOR),
    "Distinct": (_LAYERS, _OPERATOR),
    "Extend": (_LAYERS, _OPERATOR),
    "Filter": (_LAYERS, _OPERATOR),
    "Group": (_LAYERS, _OPERATOR),
    "Join": (_LAYERS, _OPERATOR),
    "LeftJoin": (_LAYERS, _OPERATOR),
    "Project": (_LAYERS, _OPERATOR),
    "Route": (_LAYERS, "how rows of a template find their members: the plan node and its operator"),
    "Union": (_LAYERS, _OPERATOR),
    "Window": (_LAYERS, "one window: what the query says of it, and the plan node that fills it"),
    "Report": (_LAYERS, "one report: when the query gives it, and the plan node that gives it"),
}
# Types of arrays, which modules of different layers each write down.
SAME = {"Bytes", "Ints"}


def public_types() -> dict[str, set[str]]:
    """The modules that define a public class or type alias of each name."""
    found = defaultdict(set)
    for file in SOURCES.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            for name in defined(node):
                if re.fullmatch("[A-Z]+[a-z]\\w*|IRI", name):
                    found[name].add(file.relative_to(SOURCES).as_posix())
    return found


def defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case _:
            return []


def test_no_two_public_types_share_a_name():
    clashes = {
        name: sorted(modules)
        for name, modules in public_types().items()
        if len(modules) > 1
        and name not in SAME
        and not {module.split("/")[0] for module in modules} <= SHARED.get(name, (set(), ""))[0]
    }
    assert clashes == {}


def test_a_layer_has_a_shared_name_once():
    for name in SHARED:
        folders = [module.split("/")[0] for module in public_types()[name]]
        assert len(folders) == len(set(folders)), name


def test_every_shared_name_is_shared():
    assert [name for name in SHARED if len(public_types()[name]) < 2] == []
