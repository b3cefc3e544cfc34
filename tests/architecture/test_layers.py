"""Imports point down the layers of the design; a new package must be given its place."""

import subprocess
import sys
from pathlib import Path


def test_imports_keep_to_the_layers(repository: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
