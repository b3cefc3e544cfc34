"""Long columns lie in files without a name, which the system may take out of memory."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

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
