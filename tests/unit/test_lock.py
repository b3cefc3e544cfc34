import os
from pathlib import Path

import pytest

from tandem.artefact import building
from tandem.errors import TandemError
from tandem.lock import holding


def test_a_held_folder_names_the_process_that_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    with holding(folder):
        with pytest.raises(TandemError, match=f"all is being made by process {os.getpid()}"), holding(folder):
            pass
        with building(folder / "stage", kind="thing", version=1, fingerprint="f") as build:
            build.facts = {}
    with holding(folder):
        assert (folder / "stage").is_dir()
    assert not (tmp_path / "all.lock").exists()
