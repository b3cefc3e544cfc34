import math
import os
from pathlib import Path

import pytest

from tandem.telemetry.sampler.disk import Disk


def write_counters(devices: Path, folder: Path, *, read: int, written: int) -> None:
    """As the kernel writes them: sectors are the third and the seventh number."""
    number = folder.stat().st_dev
    device = devices / f"{os.major(number)}:{os.minor(number)}"
    device.mkdir(parents=True, exist_ok=True)
    (device / "stat").write_text(f"   9 1 {read} 3   7 2 {written} 8  0 4 5\n")


def test_rates_are_of_the_device_that_holds_the_folder(tmp_path: Path) -> None:
    devices = tmp_path / "devices"
    write_counters(devices, tmp_path, read=100, written=1000)
    disk = Disk(tmp_path, devices=devices)
    write_counters(devices, tmp_path, read=104, written=1100)
    sample = disk.sample(2.0)
    assert sample["disk_read_bytes_per_s"] == 4 * 512 / 2
    assert sample["disk_written_bytes_per_s"] == 100 * 512 / 2
    assert disk.describe()["disk"] != ""


def test_a_file_system_without_a_device_has_room_but_no_rates(tmp_path: Path) -> None:
    disk = Disk(tmp_path, devices=tmp_path / "none")
    sample = disk.sample(1.0)
    assert disk.describe() == {"disk": ""}
    assert math.isnan(sample["disk_read_bytes_per_s"])
    assert math.isnan(sample["disk_written_bytes_per_s"])
    assert sample["disk_free_bytes"] > 0


def test_a_folder_that_is_yet_to_be_made_is_on_the_disk_of_the_one_above(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "runs" / "first", devices=tmp_path / "none")
    assert disk.sample(1.0)["disk_free_bytes"] == pytest.approx(os.statvfs(tmp_path).f_bavail * 4096, rel=1)


def test_a_disk_that_does_not_answer_is_no_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path) -> None:
        raise OSError("stale file handle")

    disk = Disk(tmp_path, devices=tmp_path / "none")
    monkeypatch.setattr(os, "statvfs", fail)
    assert disk.sample(1.0)["disk_free_bytes"] == -1


def test_a_disk_that_does_not_answer_at_the_start_is_one_without_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: Path, **_: object) -> None:
        raise PermissionError("planted")

    monkeypatch.setattr("tandem.telemetry.sampler.disk._existing", fail)
    assert Disk(tmp_path).describe() == {"disk": ""}
