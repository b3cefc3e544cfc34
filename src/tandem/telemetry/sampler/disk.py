"""The disk under a run folder: its room, and what goes through its device."""

import math
import os
from pathlib import Path
from typing import TypedDict

from tandem.telemetry.sampler.growth import Growth, rate

__all__ = ["Disk", "DiskFacts", "DiskSample"]

_DEVICES = Path("/sys/dev/block")
_SECTOR_BYTES = 512
_READ, _WRITTEN = 2, 6
"""Places of sectors read and written in a device's line of statistics."""


class DiskFacts(TypedDict):
    """Fields of HostDescribed."""

    disk: str


class DiskSample(TypedDict):
    """Fields of HostSampled."""

    disk_free_bytes: int
    disk_read_bytes_per_s: float
    disk_written_bytes_per_s: float


class Disk:
    """The device that holds a folder; a file system without one, as over a network, has room but no rates."""

    def __init__(self, folder: Path, *, devices: Path = _DEVICES) -> None:
        self._folder = folder
        self._device = devices / _device_number(folder)
        self._growth = Growth()
        self._growth.since_last(self._sectors())

    def describe(self) -> DiskFacts:
        """Name of the device; empty where there is none."""
        return {"disk": self._device.resolve().name if self._device.exists() else ""}

    def sample(self, seconds: float) -> DiskSample:
        """Room now, and rates over the seconds since the last look."""
        grown = self._growth.since_last(self._sectors())
        return {
            "disk_free_bytes": _free_bytes(self._folder),
            "disk_read_bytes_per_s": rate(grown.get("read", math.nan) * _SECTOR_BYTES, seconds),
            "disk_written_bytes_per_s": rate(grown.get("written", math.nan) * _SECTOR_BYTES, seconds),
        }

    def _sectors(self) -> dict[str, int]:
        try:
            held = (self._device / "stat").read_text().split()
            return {"read": int(held[_READ]), "written": int(held[_WRITTEN])}
        except (OSError, ValueError, IndexError):
            return {}


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.resolve().parents) if each.exists())


def _device_number(folder: Path) -> str:
    """As the kernel names devices; a disk that does not answer has a number that no device has."""
    try:
        number = _existing(folder).stat().st_dev
    except OSError:
        return "unknown"
    return f"{os.major(number)}:{os.minor(number)}"


def _free_bytes(folder: Path) -> int:
    """Room for who is not root; -1 where the file system does not tell."""
    try:
        held = os.statvfs(_existing(folder))
    except OSError:
        return -1
    return held.f_bavail * held.f_frsize
