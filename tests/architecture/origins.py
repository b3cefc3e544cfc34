"""Where the names of a module come from, whatever it calls them: for tests that look for what must not be used."""

import ast
from collections.abc import Iterator, Mapping

__all__ = ["imported", "origins", "used"]

_BY_NAME = {"import_module", "__import__"}


def origins(tree: ast.AST) -> Mapping[str, str]:
    """By name, what it stands for, as in P: subprocess.Popen for `from subprocess import Popen as P`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        # A module or a function of one, under another name.
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            origin = _origin(node.value, names)
            is_foreign = origin.partition(".")[0] in {value.partition(".")[0] for value in names.values()}
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            names |= dict.fromkeys(targets, origin) if is_foreign else {}
    return names


def used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each name, attribute and `getattr` of a written name, called or not."""
    names = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.lineno, _origin(node, names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _origin(node.func, names) == "getattr":
            owner, *words = node.args
            if words and isinstance(words[0], ast.Constant):
                yield node.lineno, f"{_origin(owner, names)}.{words[0].value!s}"


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules, and what is taken out of them, imported by a function too; "" for one whose name is computed."""
    names = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and node.args
            and _origin(node.func, names).rpartition(".")[2] in _BY_NAME
        ):
            word = node.args[0]
            yield str(word.value) if isinstance(word, ast.Constant) else ""


def _origin(node: ast.AST, names: Mapping[str, str]) -> str:
    """The full name; of what an expression gives, `?` and the attributes."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_origin(node.value, names)}.{node.attr}"
    return "?"
