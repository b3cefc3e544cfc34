"""A run that goes on, and what can be done to it: on two hosts of a lab, or on this machine alone."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.faulting import Training, command_of, training
from benchmarks.truth.real import MICRO, WEAK

from tandem.lab import Lab
from tandem.lab.process import processes_in
from tandem.lab.state import read_state
from tandem.runlog.event import StepFinished
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import read_records

__all__ = ["Scene", "Watch", "alone", "in_lab", "step_ends_ns"]

_LOOK_S = 0.2
_TRIES = 50
_PATIENCE_S = 400.0
_MEMORY = Path("/sys/fs/cgroup/memory")
"""Of the first version, since only there a group's limit can be lowered below what it has."""


Watch: TypeAlias = Callable[[Path, Lab | None], AbstractContextManager[Mapping[str, str]]]
"""Another tool that watches a run in this folder: while it does, ranks need this in their environment."""


@dataclass(slots=True, kw_only=True)
class Scene:
    """One run with two ranks."""

    folder: Path
    name: str
    process: "subprocess.Popen[str]"
    lab: Lab | None = None

    @property
    def weak(self) -> Path:
        """The file that says in what the ranks are slow now; of a run on this machine."""
        return self.folder / "weak.json"

    @property
    def group(self) -> Path:
        """The control group for the memory of a run on this machine, made where the kernel has such."""
        return _MEMORY / f"tandem-truth-{os.getpid()}"

    def namespace(self, host: str) -> str:
        """The network namespace of a host of the lab."""
        assert self.lab is not None
        return read_state(self.lab.folder).host(host).namespace

    def workers(self) -> Mapping[int, int]:
        """Process numbers by rank."""
        if self.lab is None:
            pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
            mark = f"runs/{self.name}\0".encode()
            pids = [pid for pid in pids if mark in command_of(pid) and self.folder == _working_folder(pid)]
        else:
            pids = [each.pid for host in self.lab.hosts for each in processes_in(self.namespace(host))]
        ranks = [pid for pid in pids if b"tandem.cli.rank" in command_of(pid)]
        return {int(_environment(pid)["RANK"]): pid for pid in ranks}

    def steps(self) -> int:
        """Steps that rank 0 has finished, as its own log says."""
        home = self.folder if self.lab is None else self.lab.home("h1") / "work"
        try:
            return RunLayout(home / "runs" / self.name).rank_log(0).read_bytes().count(b'"StepFinished"')
        except OSError:
            return 0

    def wait_for_step(self, step: int) -> None:
        """Wait until so many steps are done; RuntimeError if the run ends before."""
        end_s = time.monotonic() + _PATIENCE_S
        while self.steps() < step:
            if self.process.poll() is not None or time.monotonic() > end_s:
                raise RuntimeError(f"{self.name} never came to step {step}: see {self.folder}")
            time.sleep(_LOOK_S)


@contextmanager
def alone(folder: Path, name: str, words: Sequence[str], *, watch: Watch | None = None) -> Iterator[Scene]:
    """Two ranks on this machine."""
    (folder / "micro.yaml").write_text(MICRO)
    command = [sys.executable, "-m", "tandem", "train", "micro.yaml", "--run", f"runs/{name}", "--plain"]
    command += ["--workers", "2", "--device", "cpu", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(WEAK)}
    environment["WEAK"] = str(folder / "weak.json")
    with _watched(watch, folder, None) as more, (folder / f"{name}.txt").open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, **more},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        scene = Scene(folder=folder, name=name, process=process)
        # From its first page on: what it has before it is in a group counts elsewhere for ever.
        with _grouped(scene.group, process.pid):
            try:
                yield scene
            finally:
                process.kill()
                process.wait()


@contextmanager
def in_lab(
    folder: Path, name: str, words: Sequence[str], *, rate: str = "none", watch: Watch | None = None
) -> Iterator[Scene]:
    """Two hosts with a link of their own, a rank on each."""
    (folder / "micro.yaml").write_text(MICRO)
    with (
        Lab.up(folder / "lab", hosts=2, rate=rate) as lab,
        _watched(watch, folder, lab) as more,
        training(lab, folder, name, [*words, "--device", "cpu", *_python(folder, more)]) as now,
    ):
        yield _scene_of(now)


@contextmanager
def _grouped(group: Path, pid: int) -> Iterator[None]:
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        for _ in range(_TRIES):  # its processes may be about to end
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(_LOOK_S)


def _watched(watch: Watch | None, folder: Path, lab: Lab | None) -> AbstractContextManager[Mapping[str, str]]:
    return nullcontext({}) if watch is None else watch(folder, lab)


def _python(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Options for hosts whose Python has this in its environment."""
    if not environment:
        return []
    python = folder / "python"
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    python.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return ["--python", str(python)]


def _scene_of(now: Training) -> Scene:
    return Scene(folder=now.folder, name=now.run, process=now.process, lab=now.lab)


def step_ends_ns(run: Path) -> list[tuple[int, int]]:
    """Of rank 0, the number of each step and when it ended."""
    return [
        (each.event.step, each.time_ns)
        for each in read_records(run)
        if each.rank == 0 and isinstance(each.event, StepFinished)
    ]


def _environment(pid: int) -> Mapping[str, str]:
    rows = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(row.split("=", 1) for row in rows if "=" in row)


def _working_folder(pid: int) -> Path:
    try:
        return Path(f"/proc/{pid}/cwd").resolve()
    except OSError:
        return Path()
