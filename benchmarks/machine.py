"""Says what a result was measured on, without host names or paths."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import all_cores

from tandem import __version__

__all__ = ["command_line", "describe_machine", "machine_slug"]


def describe_machine(libraries: Mapping[str, str]) -> dict[str, object]:
    """Return processor, memory, system, how busy it is now, and versions: ours, then those of `libraries`."""
    return {
        "cpu": _field(Path("/proc/cpuinfo"), "model name"),
        "cores": all_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "load_before": round(os.getloadavg()[0], 2),
        "versions": {
            "python": platform.python_version(),
            "tandem-nmt": __version__,
            **{name: version(name) for name in ("sentencepiece", "numpy", "torch")},
            **libraries,
        },
    }


def command_line() -> str:
    """Return how the script was called, without the folders of this machine."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv]
    return shlex.join([Path(words[0]).name, *words[1:]])


def machine_slug(device: str = "cpu") -> str:
    """Return a short name for this kind of machine, fit for a file name: `amd-epyc-2-cores`, `nvidia-h200`."""
    words = f"{_field(Path('/proc/cpuinfo'), 'model name')} {all_cores()} cores"
    if device == "cuda":
        # Only now: most benchmarks do without torch.
        import torch  # noqa: PLC0415

        words = torch.cuda.get_device_name()
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _field(path: Path, name: str) -> str:
    values = (
        line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith(name)
    )
    return next(values, platform.machine())
