"""A run as a job of Slurm's: the batch script, and its submission."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import UnfitFileError

__all__ = ["SlurmJob", "submit", "time_limit_s"]

NOTICE_S = 300
"""How long before the end of its time a job saves, at most."""
_LEAST_NOTICE_S = 60
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:+@=-]*")
_PATH = re.compile(r"[A-Za-z0-9_./+@:,=-]+")
_LIMIT = re.compile(
    r"(?:(?P<days>\d+)-(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?"
    r"|(?:(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+))|(?P<only>\d+))"
)

# A step of srun's is one start of all ranks. Slurm warns the script alone, which asks the ranks to save, by scancel,
# since srun would kill them. A rank that is lost ends its step; another step goes on from the newest checkpoint.
# One task alone that was asked to stop, as by a preemption, has saved and ends with 143.
_BODY = """
cd {folder} || exit 1
stopped= left={restarts}
trap 'stopped=yes; scancel --signal=TERM "$SLURM_JOB_ID"' USR1
newest() {{ ls {checkpoints} 2>/dev/null | tail -n 1; }}

while [ -z "$stopped" ]; do
  before=$(newest)
  {step} &
  step=$!
  wait "$step"
  code=$?
  while kill -0 "$step" 2>/dev/null; do wait "$step"; code=$?; done
  if [ -n "$stopped" ] || [ "$code" = 0 ] || [ "$code" = 143 ]; then break; fi
  if [ "$(newest)" = "$before" ]; then left=$((left - 1)); else left={restarts}; fi
  [ "$left" -lt 0 ] && exit "$code"
  echo "Starting again: the ranks ended with exit code $code."
done
if [ -n "$stopped" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """A job that trains; empty and zero values are left to the cluster."""

    name: str
    run: Path
    """Absolute: the script and what the job prints go there."""
    folder: Path
    """Absolute: where the command runs."""
    command: Sequence[str]
    """What each rank runs."""
    nodes: int
    workers: int
    """Ranks a node."""
    restarts: int
    """How often the ranks are started again without a new checkpoint between."""
    time: str = ""
    partition: str = ""
    account: str = ""
    gpus_per_node: int = 0
    cpus_per_task: int = 0

    @property
    def script_file(self) -> Path:
        """Where the script goes."""
        return self.run / "slurm.sh"

    def script(self) -> str:
        """The batch script; TandemError for a value that Slurm would read as something else."""
        notice_s = max(
            _LEAST_NOTICE_S, min(NOTICE_S, time_limit_s(self.time) // 10 if self.time else NOTICE_S)
        )
        options = {
            "job-name": _checked("the name", self.name, _WORD),
            "nodes": self.nodes,
            "ntasks-per-node": self.workers,
            "cpus-per-task": self.cpus_per_task,
            "gpus-per-node": self.gpus_per_node,
            "time": self.time,
            "partition": self.partition and _checked("--partition", self.partition, _WORD),
            "account": self.account and _checked("--account", self.account, _WORD),
            "output": _checked("the run's folder", str(self.run), _PATH) + "/slurm-%j.txt",
            "open-mode": "append",
            "signal": f"B:USR1@{notice_s}",
        }
        given = [f"#SBATCH --{name}={value}" for name, value in options.items() if value]
        body = _BODY.format(
            folder=shlex.quote(str(self.folder)),
            checkpoints=shlex.quote(str(self.run / "checkpoints")),
            restarts=self.restarts,
            step=shlex.join(self._step()),
        )
        head = [
            "#!/bin/bash",
            "# Written by tandem launch slurm. Give it to sbatch again to go on with the run.",
        ]
        return "\n".join([*head, *given, "#SBATCH --requeue"]) + "\n" + body

    def _step(self) -> list[str]:
        # What the job has, a step no longer inherits since Slurm 22.05.
        cpus = [f"--cpus-per-task={self.cpus_per_task}"] if self.cpus_per_task else []
        # All nodes see the run's folder, and so can exchange keys in it.
        keys = ["--key-folder", str(self.run / "keys")] if self.nodes > 1 else []
        return ["srun", "--kill-on-bad-exit=1", *cpus, *self.command, *keys]


def time_limit_s(text: str) -> int:
    """Seconds of a time limit as Slurm writes it: 90, 90:00, 24:00:00, 2-12, 2-12:00:00."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise TandemError(f"--time {text!r} is no time limit: write minutes, 24:00:00 or 2-12:00:00.")
    part = {name: int(value or 0) for name, value in found.groupdict().items()}
    hours, minutes = part["hours"] + part["h"], part["minutes"] + part["m"] + part["only"]
    return ((part["days"] * 24 + hours) * 60 + minutes) * 60 + part["seconds"] + part["s"]


def submit(job: SlurmJob) -> str:
    """Write the script into the run's folder and hand it to Slurm; gives the number of the job."""
    text = job.script()
    program = shutil.which("sbatch")
    if program is None:
        raise TandemError("There is no sbatch on this machine: submit from a login node of the cluster.")
    job.run.mkdir(parents=True, exist_ok=True)
    _refuse_links(job.run)
    write_atomic(job.script_file, text.encode())
    words = [program, "--parsable", str(job.script_file)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TandemError(f"Slurm refuses the job ({reason}): mend {job.script_file}, or the options.")
    # On a federation it is followed by the name of the cluster.
    return result.stdout.strip().partition(";")[0]


def _refuse_links(run: Path) -> None:
    """Slurm itself appends to the file of a job's number, wherever a link of that name leads."""
    for path in run.glob("slurm-*.txt"):
        if path.is_symlink():
            raise UnfitFileError(f"{path} is a link: remove it.")


def _checked(what: str, text: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(text) is None:
        raise TandemError(
            f"Slurm cannot be given {text!r} for {what}: use letters, digits and . _ - alone, without blanks."
        )
    return text
