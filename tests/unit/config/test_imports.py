"""The front door stays light."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("tandem.config", {"torch", "numpy", "typer", "rich"}),
        ("tandem.cli.config", {"torch", "numpy", "pydantic", "yaml", "tandem.config"}),
    ],
)
def test_importing_loads_nothing_heavy(module: str, absent: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not absent & set(run.stdout.split())
