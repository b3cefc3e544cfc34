import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tandem.artefact import building
from tandem.errors import TandemError
from tandem.lock import BusyError, InUseError, holding, is_held, unused, using

USER = """
import os, sys
from pathlib import Path
from tandem.lock import using
with using(Path(sys.argv[1])):
    if sys.argv[2] == "fork" and os.fork() == 0:
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(0)
    if sys.argv[2] != "fork":
        print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def user(folder: Path, how: str = "plain") -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that uses the folder until it is killed or the block ends."""
    command = [sys.executable, "-c", USER, str(folder), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


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


def test_a_folder_in_use_is_not_changed_and_its_users_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with user(folder) as other, using(folder):
        first, second = sorted([other.pid, os.getpid()])
        with pytest.raises(InUseError) as caught, unused(folder):
            pass
    assert str(caught.value) == (
        f"{folder} is in use by processes {first}, {second}: wait until that run ends, "
        "or give data.folder another place."
    )


def test_a_folder_is_free_when_its_last_user_has_gone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with using(folder):
        with using(folder):
            pass
        with pytest.raises(InUseError, match=f"in use by process {os.getpid()}: "), unused(folder):
            pass
    with unused(folder):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["plain", "fork"])
def test_a_killed_user_frees_the_folder_even_if_a_child_of_it_lives(tmp_path: Path, how: str) -> None:
    with user(tmp_path / "data", how) as other:
        with pytest.raises(InUseError), unused(tmp_path / "data"):
            pass
        other.kill()
        other.wait()
        with unused(tmp_path / "data"):
            assert (tmp_path / "data.users").exists()


def test_a_folder_that_is_being_changed_is_busy(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with (
        holding(folder),
        unused(folder),
        pytest.raises(BusyError, match=f"data is being made by process {os.getpid()}"),
        using(folder),
    ):
        pass
    with using(folder), using(folder):
        pass


def test_one_folder_has_one_lock_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    with using(tmp_path / "link"), pytest.raises(InUseError), unused(tmp_path / "data"):
        pass


@pytest.mark.parametrize("refusal", [errno.EROFS, errno.EACCES, errno.ENOLCK])
def test_where_no_lock_can_be_kept_readers_go_on_and_makers_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr("fcntl.flock" if refusal == errno.ENOLCK else "os.open", refuse)
    read = []
    with using(tmp_path / "data"):
        read.append("data")
    with pytest.raises(TandemError, match="Cannot write in"), unused(tmp_path / "data"):
        pass
    assert read == ["data"]


def test_an_error_inside_the_block_lets_go(tmp_path: Path) -> None:
    for lock in (using, unused):
        with pytest.raises(KeyError), lock(tmp_path / "data"):
            raise KeyError
    with unused(tmp_path / "data"):
        pass


def test_whether_a_folder_is_held_can_be_asked_without_touching_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_held(folder)
    assert list(tmp_path.iterdir()) == []
    with holding(folder):
        assert is_held(folder)
    assert not is_held(folder)
    (tmp_path / "run.lock").write_bytes(b'{"pid": 1}\n')
    assert not is_held(folder)


@pytest.mark.parametrize("lock", [holding, unused])
def test_a_lock_that_is_a_link_is_refused_and_what_it_points_to_stays(
    tmp_path: Path, lock: Callable[[Path], AbstractContextManager[None]]
) -> None:
    (tmp_path / "precious").write_text("text")
    for end in ("lock", "users"):
        (tmp_path / f"data.{end}").symlink_to("precious")
    with pytest.raises(TandemError, match="is a link: remove it"), lock(tmp_path / "data"):
        pass
    assert not is_held(tmp_path / "data")
    with using(tmp_path / "data"):
        assert (tmp_path / "precious").read_text() == "text"


@pytest.mark.timeout(20)
def test_a_lock_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for end in ("lock", "users"):
        os.mkfifo(tmp_path / f"data.{end}")
    with pytest.raises(TandemError, match="not a plain file"), holding(tmp_path / "data"):
        pass
    with using(tmp_path / "data"):
        pass


def test_a_file_that_is_no_lock_is_neither_emptied_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text("# packages\n")
    (tmp_path / "data").symlink_to(tmp_path / "poetry")
    with pytest.raises(TandemError, match=r"is no lock of Tandem's"), holding(tmp_path / "data"):
        pass
    assert (tmp_path / "poetry.lock").read_text() == "# packages\n"
