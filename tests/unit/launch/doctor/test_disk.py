from pathlib import Path

import pytest

from tandem.launch.doctor.disk import describe_disk


def test_a_disk_is_written_and_nothing_stays_behind(tmp_path: Path) -> None:
    disk = describe_disk(tmp_path, most_bytes=2**20)
    assert disk.write_bytes_per_s > 0
    assert disk.free_bytes > 0
    assert (disk.folder, disk.problem) == (str(tmp_path), "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_yet_is_on_the_disk_of_the_one_above(tmp_path: Path) -> None:
    disk = describe_disk(tmp_path / "a" / "b", most_bytes=2**20)
    assert disk.folder == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert describe_disk(tmp_path, most_bytes=2**20).problem == "Permission denied"
