"""No verdict chooses its confidence: it is computed from grounds, in one place."""

import ast
from pathlib import Path

import pytest

OBSERVE = Path(__file__).resolve().parents[2] / "src" / "tandem" / "observe"
MAKERS = {OBSERVE / "finding.py", OBSERVE / "agreement.py"}
"""An answer is made in the first; the second lowers answers that contradict each other."""


@pytest.mark.parametrize(
    "path", sorted({*OBSERVE.rglob("*.py")} - MAKERS), ids=lambda path: str(path.relative_to(OBSERVE))
)
def test_confidence_is_set_where_it_is_computed_and_nowhere_else(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            assert "confidence" not in {keyword.arg for keyword in node.keywords}, f"line {node.lineno}"
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            assert name != "Finding", f"line {node.lineno}: an answer is made by its question"
