import os
import socket
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.launch import local_socket
from tandem.launch.local_socket import is_own_peer, private_folder, short_name


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(local_socket, "TEMPORARY", folder)
    return folder


def test_the_folder_of_the_session_is_used_where_it_is_private(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    assert private_folder({"XDG_RUNTIME_DIR": str(runtime)}) == runtime


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_not_used(tmp_path: Path, temporary: Path, mode: int) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    runtime.chmod(mode)
    assert private_folder({"XDG_RUNTIME_DIR": str(runtime)}).parent == temporary


@pytest.mark.parametrize("given", ["", "relative", "/nowhere/at/all"])
def test_without_a_session_there_is_one_folder_for_each_user(temporary: Path, given: str) -> None:
    folder = private_folder({"XDG_RUNTIME_DIR": given})
    assert folder == temporary / f"tandem-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder({}) == folder


def test_a_folder_that_another_has_laid_in_its_place_is_refused(tmp_path: Path, temporary: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    place = temporary / f"tandem-{os.getuid()}"
    place.symlink_to(theirs)
    with pytest.raises(TandemError, match="yours alone.*set XDG_RUNTIME_DIR"):
        private_folder({})
    place.unlink()
    place.touch()
    with pytest.raises(TandemError, match="set XDG_RUNTIME_DIR"):
        private_folder({})
    place.unlink()
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(TandemError, match="yours alone"):
        private_folder({})


def test_a_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    with pytest.raises(TandemError, match="yours alone"):
        private_folder({})


def test_a_short_name_leads_to_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 200) / "file"
    file.parent.mkdir()
    file.write_text("here")
    with short_name(file) as name:
        assert len(name) < 100
        assert Path(name).read_text() == "here"


def test_the_other_end_of_a_connection_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = socket.socketpair()
    with near, far:
        assert is_own_peer(near)
        monkeypatch.setattr(os, "getuid", lambda: 123_456)
        assert not is_own_peer(near)
