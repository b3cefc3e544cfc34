"""Which file is where in a run folder, and how a file of its log is opened."""

import re
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from tandem.files import open_regular

__all__ = ["RunLayout", "open_log"]


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The places in one run's folder."""

    folder: Path

    @property
    def log(self) -> Path:
        """Folder of the run log: every `.jsonl` file in it is a part of the log."""
        return self.folder / "log"

    def rank_log(self, rank: int) -> Path:
        """Log of one rank."""
        return self.log / f"rank-{rank:05d}.jsonl"

    def host_log(self, host: str) -> Path:
        """Log of whatever watches over the ranks of one host."""
        return self.log / f"host-{_safe(host)}.jsonl"

    def samples_log(self, host: str) -> Path:
        """Log of what the sampler of one host saw once a second."""
        return self.log / f"samples-{_safe(host)}.jsonl"

    @property
    def report(self) -> Path:
        """Folder of the report."""
        return self.folder / "report"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def residuals(self) -> Path:
        """Folder of what encoding gradients has left over, by step and rank."""
        return self.folder / "residuals"

    @property
    def tensorboard(self) -> Path:
        """Folder of the curves that TensorBoard shows."""
        return self.folder / "tensorboard"


def open_log(path: Path) -> BufferedReader:
    """Open a file in the folder of a run's log: neither may be a link, and no pipe is waited for."""
    return open_regular(path, below=path.parent.parent)


def _safe(host: str) -> str:
    return re.sub("[^A-Za-z0-9.-]", "_", host)
