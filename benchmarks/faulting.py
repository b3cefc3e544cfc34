"""A run over the hosts of a lab, and what happens to it: workers, hosts and links that fail while it goes on."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from tandem.lab import Lab
from tandem.lab.process import processes_in
from tandem.lab.state import read_state
from tandem.runlog.event import Event, RoundStarted, StepFinished, TrainingStarted, WorkersLost
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import read_records
from tandem.runlog.record import Record, from_line

__all__ = [
    "FAULTS",
    "Fault",
    "Outcome",
    "Training",
    "command_of",
    "suffer",
    "training",
    "weights",
]

_Fact = TypeVar("_Fact", bound=Event)
_TANDEM = (sys.executable, "-m", "tandem")
_LOOK_S = 0.25
_TAIL_BYTES = 10_000
_PATIENCE_S = 240.0
_NANO = 1e9


@dataclass(slots=True, kw_only=True)
class Training:
    """A run that goes on over the hosts of a lab, from a machine that is none of them; hosts share no disk."""

    lab: Lab
    folder: Path
    """Where the head works."""
    run: str
    process: "subprocess.Popen[str]"
    output: Path

    @property
    def records(self) -> list[Record]:
        """The run's log as the head has it."""
        with suppress(Exception):
            return list(read_records(self.folder / "runs" / self.run))
        return []

    def last_step(self) -> int:
        """The newest step that rank 0 told of, as the first host has it: the head hears of it some seconds later."""
        file = RunLayout(self.lab.home("h1") / "work" / "runs" / self.run).rank_log(0)
        steps = [0]
        with suppress(OSError):
            for line in file.read_bytes()[-_TAIL_BYTES:].splitlines():
                with suppress(ValueError):
                    event = from_line(line).event
                    steps += [event.step] if isinstance(event, StepFinished) else []
        return max(steps)

    def count(self, kind: type) -> int:
        """How many events of a kind the log has."""
        return sum(isinstance(each.event, kind) for each in self.records)

    def wait_for(self, is_there: Callable[[], bool], what: str) -> None:
        """Wait until something is so; RuntimeError if the run ends before, or it takes too long."""
        end_s = time.monotonic() + _PATIENCE_S
        while not is_there():
            if self.process.poll() is not None or time.monotonic() > end_s:
                raise RuntimeError(f"waited in vain for {what}:\n{self.output.read_text()[-2000:]}")
            time.sleep(_LOOK_S)

    def workers_of(self, host: str) -> list[int]:
        """Process numbers of a host's ranks."""
        namespace = read_state(self.lab.folder).host(host).namespace
        return [each.pid for each in processes_in(namespace) if b"tandem.cli.rank" in command_of(each.pid)]

    def end(self) -> int:
        """Wait for the end; the exit status. RuntimeError if it does not come."""
        try:
            return self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"{self.run} hangs:\n{self.output.read_text()[-2000:]}") from None


@contextmanager
def training(
    lab: Lab, folder: Path, run: str, words: Sequence[str], *, hosts: int | None = None
) -> Iterator[Training]:
    """Start a run on the first so many hosts of the lab, or on all; it is killed if it goes on after the block."""
    output = folder / f"{run}.txt"
    command = [*_TANDEM, "train", "micro.yaml", "--run", f"runs/{run}", "--plain", "--dir", "work"]
    command += ["--hosts", ",".join(lab.hosts[:hosts]), "--ssh-config", str(lab.ssh_config), *words]
    with output.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, text=True)
        try:
            yield Training(lab=lab, folder=folder, run=run, process=process, output=output)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that happens to one host, and what may happen after the run has noticed."""

    name: str
    host: str
    strike: Callable[[Training, str], None]
    mend: Callable[[Training, str], None] | None = None
    """When the run has lost the host, or where it cannot lose it, at once."""
    is_loss: bool = True
    """Whether the ranks have to be started again."""
    keeps_ranks: bool = True
    """Whether the run waits for its host, or can do without it and has fewer ranks at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a fault did to a run."""

    fault: str
    exit_code: int
    starts: int
    hosts_at_the_end: int
    goes_on_s: float
    """From the fault to the first step after it; without another start: the longest time without a step."""
    steps_lost: int
    """Steps that were made twice."""
    last_step: int
    is_identical: bool
    """Whether the last weights and moments are the same bytes as of a run that was left alone."""
    told: Sequence[str] = field(default_factory=list)
    """What the run said of its losses."""


def suffer(
    fault: Fault,
    lab: Lab,
    folder: Path,
    *,
    run: str,
    at_step: int,
    alone: str,
    hosts: int,
    words: Sequence[str] = (),
) -> Outcome:
    """Train, let the fault happen at a step, and see how it ends; `alone` are the sums of an undisturbed run."""
    words = ["--min-hosts", str(hosts if fault.keeps_ranks else hosts - 1), *words]
    with training(lab, folder, run, words, hosts=hosts) as now:
        try:
            struck_ns = _let_happen(fault, now, at_step=at_step)
            code = now.end()
        finally:
            _restore(lab, fault.host)
        records = now.records
        # What a host that died had not sent yet is still on its disk.
        own = list(read_records(lab.home("h1") / "work" / "runs" / run))
        records += [each for each in own if isinstance(each.event, StepFinished) and each not in records]
    return _tell(fault, records, code=code, struck_ns=struck_ns, weights=weights(lab, run), alone=alone)


def _let_happen(fault: Fault, now: Training, *, at_step: int) -> int:
    now.wait_for(lambda: now.last_step() >= at_step, f"step {at_step}")
    struck_ns = time.time_ns()
    fault.strike(now, fault.host)
    if fault.is_loss:
        now.wait_for(lambda: now.count(WorkersLost) > 0, "the run to notice")
    if fault.mend is not None:
        fault.mend(now, fault.host)
    return struck_ns


def weights(lab: Lab, run: str) -> str:
    """A sum over the newest checkpoint's weights and moments, which must be the same on every host that has it."""
    sums: dict[int, set[str]] = {}
    for host in lab.hosts:
        folders = sorted((lab.home(host) / "work" / "runs" / run / "checkpoints").glob("step-????????"))
        if folders:
            digest = hashlib.sha256()
            for name in ("model.safetensors", "optimizer.safetensors"):
                digest.update((folders[-1] / name).read_bytes())
            sums.setdefault(int(folders[-1].name[5:]), set()).add(digest.hexdigest())
    newest = sums[max(sums)]
    return newest.pop() if len(newest) == 1 else "hosts differ"


def _tell(
    fault: Fault, records: Sequence[Record], *, code: int, struck_ns: int, weights: str, alone: str
) -> Outcome:
    rounds = _moments(records, RoundStarted)
    steps = _moments([each for each in records if each.rank == 0], StepFinished)
    later = [time_ns for time_ns, _ in rounds if time_ns > struck_ns]
    lost = 0
    if later:
        goes_on_ns = min(time_ns for time_ns, _ in steps if time_ns > later[0]) - struck_ns
        # Of all ranks: one that was killed had not written down its last steps.
        made = [event.step for time_ns, event in _moments(records, StepFinished) if time_ns < later[0]]
        begun = [event.step for time_ns, event in _moments(records, TrainingStarted) if time_ns > later[0]]
        lost = max(made) - min(begun)
    else:
        times = [struck_ns, *(time_ns for time_ns, _ in steps if time_ns > struck_ns)]
        goes_on_ns = max(after - before for before, after in pairwise(times))
    return Outcome(
        fault=fault.name,
        exit_code=code,
        starts=len(rounds),
        hosts_at_the_end=len(rounds[-1][1].hosts),
        goes_on_s=round(goes_on_ns / _NANO, 1),
        steps_lost=lost,
        last_step=max(event.step for _, event in steps),
        is_identical=weights == alone,
        told=[f"{event.host}: {event.reason}" for _, event in _moments(records, WorkersLost)],
    )


def _moments(records: Sequence[Record], kind: type[_Fact]) -> list[tuple[int, _Fact]]:
    return [(each.time_ns, each.event) for each in records if isinstance(each.event, kind)]


def _kill_worker(now: Training, host: str) -> None:
    os.kill(now.workers_of(host)[0], signal.SIGKILL)


def _cut_power(now: Training, host: str) -> None:
    now.lab.signal(host, signal.SIGKILL)


def _boot(now: Training, host: str) -> None:
    now.lab.boot(host)


def _freeze(now: Training, host: str) -> None:
    now.lab.signal(host, signal.SIGSTOP)


def _thaw(now: Training, host: str) -> None:
    now.lab.signal(host, signal.SIGCONT)


def _unplug(now: Training, host: str) -> None:
    now.lab.link(host, "down")


def _plug(now: Training, host: str) -> None:
    now.lab.link(host, "up")


def _unplug_for_3_s(now: Training, host: str) -> None:
    now.lab.link(host, "down")
    time.sleep(3.0)
    now.lab.link(host, "up")


def _slow_down(now: Training, host: str) -> None:
    """Stop the host's ranks for 80 of each 100 ms, for five seconds."""
    pids = now.workers_of(host)
    end_s = time.monotonic() + 5.0
    while time.monotonic() < end_s:
        for number, lasting_s in ((signal.SIGSTOP, 0.08), (signal.SIGCONT, 0.02)):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(lasting_s)


def _freeze_worker(now: Training, host: str) -> None:
    os.kill(now.workers_of(host)[0], signal.SIGSTOP)


def _restore(lab: Lab, host: str) -> None:
    lab.signal(host, signal.SIGCONT)
    lab.link(host, "up")
    lab.boot(host)


def command_of(pid: int) -> bytes:
    """The command line of a process; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


FAULTS: tuple[Fault, ...] = (
    Fault(name="worker killed", host="h2", strike=_kill_worker),
    Fault(name="host killed, comes back", host="h2", strike=_cut_power, mend=_boot),
    Fault(name="host killed for good", host="h2", strike=_cut_power, keeps_ranks=False),
    Fault(name="rendezvous host killed, comes back", host="h1", strike=_cut_power, mend=_boot),
    Fault(name="rendezvous host killed for good", host="h1", strike=_cut_power, keeps_ranks=False),
    Fault(name="link down for 3 s", host="h2", strike=_unplug_for_3_s, is_loss=False),
    Fault(name="link cut, mended", host="h2", strike=_unplug, mend=_plug),
    Fault(name="link cut for good", host="h2", strike=_unplug, keeps_ranks=False),
    Fault(name="host hangs, wakes up", host="h2", strike=_freeze, mend=_thaw),
    Fault(name="host hangs for good", host="h2", strike=_freeze, keeps_ranks=False),
    Fault(name="worker hangs", host="h2", strike=_freeze_worker),
    Fault(name="host slow for 5 s", host="h2", strike=_slow_down, is_loss=False),
)
