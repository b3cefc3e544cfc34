"""A program that is measured beside others, and how it is installed."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

__all__ = ["BENCH", "Program", "call", "install", "install_toolkit"]

_ROOT = Path(__file__).resolve().parents[1]
BENCH = _ROOT / ".bench"
"""Where everything that benchmarks need is kept; git ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program, how it is installed, and how what it does is described beside its figures."""

    name: str
    version: str
    does: str
    install: Callable[[Path], None] | None = None

    @property
    def home(self) -> Path:
        """Return the folder it is installed in."""
        return BENCH / f"{self.name}-{self.version}"


def install(program: Program) -> None:
    """Install `program` under .bench unless it is there; SystemExit with the end of the log where that fails."""
    finished = program.home / "installed"
    if program.install is None or finished.exists():
        return
    print(f"installing {program.name} {program.version} into {program.home.relative_to(_ROOT)} …", flush=True)
    shutil.rmtree(program.home, ignore_errors=True)
    program.home.mkdir(parents=True)
    program.install(program.home)
    finished.touch()


def install_toolkit(home: Path, toolkit: str, *, needs: Sequence[str]) -> None:
    """Install with Tandem's torch and without the toolkit's own bounds, which name one too old for this Python."""
    call([sys.executable, "-m", "venv", home], log=home / "log")
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    torch = f"torch=={version('torch').partition('+')[0]}"
    call([*pip, torch, *needs], log=home / "log")
    call([*pip, "--no-deps", "--no-build-isolation", toolkit], log=home / "log")


def call(command: Sequence[str | Path], *, log: Path) -> None:
    """Run `command` with its output in `log`; SystemExit with the end of the log where it fails."""
    with log.open("ab") as output:
        failed = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    if failed:
        text = " ".join(map(str, command))
        raise SystemExit(f"{text} failed:\n{log.read_text(errors='replace')[-2000:]}")
