"""The outer limits of size; the aim is to be well inside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_ARGUMENTS = 6
MAX_POSITIONAL = 5
MAX_NESTING = 3

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tandem"
FILES = sorted(SOURCE.rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def nesting(node: ast.AST, depth: int = 0) -> int:
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            continue
        deeper = isinstance(child, ast.For | ast.While | ast.If | ast.With | ast.Try | ast.Match)
        # An elif is written beside its if, not inside it.
        chained = isinstance(node, ast.If) and isinstance(child, ast.If) and child in node.orelse
        deepest = max(deepest, nesting(child, depth + (deeper and not chained)))
    return deepest


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    for function in functions(path):
        where = f"{path.name}:{function.lineno} {function.name}"
        assert (function.end_lineno or 0) - function.lineno < MAX_FUNCTION_LINES, f"{where} is long"
        # A kernel takes its pointers as they come: Triton's launcher names them.
        is_kernel = any(ast.unparse(each).startswith("triton.jit") for each in function.decorator_list)
        positional = [] if is_kernel else [*function.args.posonlyargs, *function.args.args]
        named = [argument for argument in positional if argument.arg not in {"self", "cls"}]
        assert len(named) <= MAX_POSITIONAL, f"{where} takes too many arguments by position"
        assert nesting(function) <= MAX_NESTING, f"{where} is nested too deeply"
