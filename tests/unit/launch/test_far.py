"""What a host says of its disk, which a stranger's run may lie on."""

import os
from pathlib import Path

import pytest

from tandem.files import UnfitFileError
from tandem.launch import far


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(far, "BEAT_S", 0.01)
    (tmp_path / "run/log").mkdir(parents=True)
    return tmp_path / "run/log"


def test_a_disk_has_one_name(log: Path) -> None:
    name = far._name_disk(log)
    assert len(name) == 16
    assert far._name_disk(log) == name == (log / ".disk").read_text()


@pytest.mark.parametrize("text", ["", "a secret"])
def test_what_is_no_name_is_made_up_for_and_told_to_nobody(log: Path, text: str) -> None:
    (log / ".disk").write_text(text)
    name = far._name_disk(log)
    assert len(name) == 16
    assert (log / ".disk").read_text() == name


def test_a_link_is_neither_read_nor_filled_and_a_pipe_not_waited_for(log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (log / ".disk").symlink_to(tmp_path / "empty")
    with pytest.raises(UnfitFileError):
        far._name_disk(log)
    assert not (tmp_path / "empty").read_text()
    (log / ".disk").unlink()
    os.mkfifo(log / ".disk")
    with pytest.raises(UnfitFileError):
        far._name_disk(log)
