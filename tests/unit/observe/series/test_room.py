"""Long columns lie in files without a name, which the system may take out of memory."""

import os
import resource
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tandem.observe.series import room
from tandem.observe.series.room import Disk

MEGA = 1 << 20


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident_bytes(array: NDArray[np.uint8]) -> int:
    """How much of a mapping that holds an array is in the memory of this process."""
    address = array.ctypes.data
    held, is_inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            begin, end = (int(each, 16) for each in first.split("-"))
            is_inside = begin <= address < end
        elif is_inside and first == "Rss:":
            held = int(rest.split()[0]) * 1024
    return held


def test_small_ones_need_no_file(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "is not there")
    held = disk.build(100)
    assert held.shape == (100,)
    assert held.dtype == np.uint8
    assert not disk.let_go()


def test_what_was_let_go_is_still_there(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    held = disk.build(4 * MEGA)
    held[:] = 7
    assert _resident_bytes(held) == 4 * MEGA
    assert disk.let_go()
    assert _resident_bytes(held) == 0
    assert (held == 7).all()


def test_files_have_no_name_and_their_place_is_given_back(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    before = _open_files()
    held = disk.build(2 * MEGA)
    held[-1] = 1
    assert list(tmp_path.iterdir()) == []
    assert _open_files() == before + 1
    del held
    assert _open_files() == before
    disk.let_go()


def _full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name"), [(os, "posix_fallocate"), (tempfile, "TemporaryFile"), (tempfile, "gettempdir")]
)
def test_memory_is_taken_where_a_file_has_no_place(
    module: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module, name, _full)
    disk = Disk()
    held = disk.build(2 * MEGA)
    held[:] = 1
    disk.let_go()
    assert held.sum() == 2 * MEGA
    assert held.base is None


def test_a_folder_that_was_named_for_such_files_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    real = os.posix_fallocate

    def look(file: int, start: int, size: int) -> None:
        seen.append(Path(f"/proc/self/fd/{file}").readlink().parent)
        real(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", look)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    Disk().build(2 * MEGA)
    monkeypatch.delenv("TMPDIR")
    Disk().build(2 * MEGA)
    assert seen == [tmp_path, Path("/var/tmp")]


def test_half_of_the_files_that_may_be_open_are_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = 2 * (len(room._ALL_MAPPED) + 3)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    disks = [Disk(tmp_path), Disk(tmp_path)]
    held = [disk.build(MEGA) for disk in disks for _ in range(4)]
    assert sum(each.base is not None for each in held) == 3
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert disks[0].build(MEGA).base is not None


def test_one_thread_may_build_while_another_lets_go(tmp_path: Path) -> None:
    disk, over = Disk(tmp_path, least_bytes=1), threading.Event()
    held = deque((disk.build(100) for _ in range(100)), maxlen=100)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def build() -> None:
        while not over.is_set():
            held.append(disk.build(100))

    builder = threading.Thread(target=build)
    builder.start()
    try:
        for _ in range(1_000):
            disk.let_go()
    finally:
        over.set()
        builder.join()
        sys.setswitchinterval(before)
