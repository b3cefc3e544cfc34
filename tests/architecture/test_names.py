"""Names that say something, and a public face that is written down."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tandem"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
EMPTY_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "misc",
    "constants",
    "manager",
    "base",
    "tools",
}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_name_says_nothing(path: Path) -> None:
    assert not EMPTY_NAMES & {path.stem, *path.relative_to(SOURCE).parts}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is_and_what_it_offers(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path} has no docstring"
    names = [node for node in tree.body if isinstance(node, ast.Assign) and _assigns(node, "__all__")]
    assert names, f"{path} has no __all__"
    offered = set(ast.literal_eval(names[0].value))
    assert offered, f"{path} offers nothing"
    assert offered <= _top_level_names(tree), f"{path} offers names that it does not have"


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.asname or alias.name for alias in node.names)
    return names
