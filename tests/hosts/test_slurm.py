"""A real Slurm with two nodes, which are hosts of a lab, runs what `tandem launch slurm` writes."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from tests.listening import listeners, outside, without_launchers

from tandem.lab import Lab
from tandem.lab.state import read_state
from tandem.runlog.event import Event, StepFinished, StopAsked, TrainingFinished, TrainingStarted
from tandem.runlog.reader import read_records

pytestmark = pytest.mark.xdist_group("lab")
Told = TypeVar("Told", bound=Event)
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RECIPE = """
name: micro
data:
  train:
    - builtin: {pairs: 1500}
  valid:
    builtin: {pairs: 50, split: valid}
subword: {vocabulary: 704, max_pieces: 64}
batch: {target_tokens: 512}
model: {preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}
optim: {warmup_steps: 10}
train: {max_steps: 1000000}
evaluate: {every_steps: 1000000, sentences: 8, probe_pairs: 50, beam: 1}
"""
# Without the system's groups of processes, which a host of a lab does not see; a requeued job starts again soon.
SETTINGS = """
ClusterName=lab
SlurmctldHost=h1
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
NodeName=h1,h2 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Slurm on the hosts of a lab."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self._daemons = ExitStack()
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("state", "spool-h1", "spool-h2"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(SETTINGS.format(folder=folder))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self._start("h1", "slurmctld", "-D")
        for host in lab.hosts:
            self._start(host, "slurmd", "-D", "-N", host)
        self.until(lambda: self.ask("sinfo", "-h", "-o", "%T %D") == "idle 2")

    def _start(self, host: str, program: str, *words: str) -> None:
        found = shutil.which(program, path=PATH)
        assert found is not None
        quiet = subprocess.DEVNULL
        daemon = self.lab.start(host, [found, *words], env=self.environment, stdout=quiet, stderr=quiet)
        self._daemons.callback(daemon.wait, timeout=60)

    def close(self) -> None:
        """Wait for the end of what a lab that goes down takes with it."""
        self._daemons.close()

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.lab.exec("h1", words, cwd=cwd, env=self.environment, capture_output=True, timeout=60)

    def ask(self, *words: str) -> str:
        return self.run(*words).stdout.strip()

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 120
        while not is_so():
            logs = "".join(
                path.read_text(errors="replace")[-2000:] for path in self.folder.rglob("slurm*.[lt]*")
            )
            assert time.monotonic() < deadline_s, logs
            time.sleep(0.1)


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    if not all(shutil.which(program, path=PATH) for program in ("slurmctld", "slurmd", "sbatch")):
        pytest.skip("needs Slurm (Debian: slurmctld slurmd slurm-client)")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "slurm").mkdir()
    with Lab.up(tmp_path / "lab", hosts=2) as lab:
        cluster = Cluster(lab, tmp_path / "slurm")
        yield cluster
    cluster.close()


def test_a_submitted_run_trains_on_two_nodes_saves_when_warned_and_goes_on_to_its_end(
    cluster: Cluster, tmp_path: Path
) -> None:
    work, run = tmp_path / "work", tmp_path / "work" / "runs" / "micro"
    work.mkdir()
    (work / "micro.yaml").write_text(RECIPE)
    words = ["micro.yaml", "--nodes", "2", "--workers", "1", "--device", "cpu", "--time", "20"]
    submitted = cluster.run(sys.executable, "-m", "tandem", "launch", "slurm", *words, cwd=work)
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.split()[1]
    output = run / f"slurm-{job}.txt"

    def seen(kind: type[Told]) -> list[Told]:
        facts = [record.event for record in read_records(run)] if any(run.glob("log/*.jsonl")) else []
        return [fact for fact in facts if isinstance(fact, kind)]

    cluster.until(lambda: bool(seen(StepFinished)))
    for host in cluster.lab.hosts:
        # The mesh, whose keys were exchanged in the run's folder, and nothing else.
        reachable = outside(without_launchers(listeners(read_state(cluster.lab.folder).host(host).namespace)))
        assert [place.rpartition(":")[0] for place in reachable] == [cluster.lab.address(host)]
    # A lost rank ends its step, and the next one goes on.
    cluster.run("scancel", "--signal=KILL", f"{job}.0")
    cluster.until(lambda: len(seen(TrainingStarted)) == 2)
    assert "Starting again" in output.read_text()
    # Slurm warns before the time is up: the run saves, and waits in the queue again.
    steps = len(seen(StepFinished))
    cluster.until(lambda: len(seen(StepFinished)) > steps)
    cluster.run("scancel", "--batch", "--signal=USR1", job)
    cluster.until(lambda: cluster.ask("squeue", "-h", "-j", job, "-o", "%T") == "PENDING")
    assert {event.signal for event in seen(StopAsked)} == {"SIGTERM"}
    (saved,) = (path.name for path in run.glob("checkpoints/step-????????"))
    last = int(saved.removeprefix("step-")) + 5
    (work / "micro.yaml").write_text(RECIPE.replace("max_steps: 1000000", f"max_steps: {last}"))
    cluster.until(lambda: cluster.ask("squeue", "-h", "-j", job) == "")
    assert "JobState=COMPLETED" in cluster.ask("scontrol", "show", "job", job)
    assert [event.resumed_from for event in seen(TrainingStarted)] == ["", "", saved]
    assert {event.ranks for event in seen(TrainingStarted)} == {2}
    assert seen(TrainingFinished)[-1].step == last
    assert (run / "checkpoints" / f"step-{last:08d}").is_dir()
    assert "warning" not in output.read_text()
