"""What tests of training share: a folder to work in, and a run that nothing happened to."""

import pytest
from tests.system.work import STEPS, Folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("user").resolve())


@pytest.fixture(scope="session")
def undisturbed(folder: Folder) -> list[bytes]:
    """The weights of a run that nothing happened to."""
    result = folder.run("train", "micro.yaml", "--run", "whole", "--workers", "2")
    assert f"whole is at step {STEPS}" in result.stdout
    for place in (f"whole/checkpoints/step-{STEPS:08d}", "whole/log", "whole/tensorboard"):
        assert place in result.stdout
        assert (folder.path / place).exists()
    assert "tandem translate whole" in result.stdout
    assert "torch" not in result.stderr
    return folder.bits("whole")
