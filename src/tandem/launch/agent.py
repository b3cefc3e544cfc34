"""One start of all workers of this host, through torch's elastic agent."""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch.distributed import DistError
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import LogsDest, LogsSpecs
from torch.distributed.elastic.rendezvous import RendezvousParameters, registry
from torch.distributed.elastic.rendezvous.api import RendezvousError

from tandem.errors import TandemError
from tandem.launch.pace import GRACE_S
from tandem.parallel.pulse import PULSE

__all__ = ["Job", "Meeting", "MeetingError", "run_once"]

LOOK_S = 0.2
"""How often the workers are looked at."""


class MeetingError(Exception):
    """The hosts of a start did not meet."""


JOIN_S = 60
"""How long the hosts of a start wait for each other."""
PARTING_S = 30.0
"""How long a host whose workers are done waits for the others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Where the hosts of one start meet, and which of them this one is."""

    address: str
    port: int
    rank: int
    """This host's number among them; number 0 keeps the store, at the address."""
    hosts: int
    name: str
    """Another one for each start."""
    own_address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every worker runs."""

    command: Sequence[str]
    workers: int
    environment: Mapping[str, str]
    pulses: Path
    """Folder for the workers' pulses, a file pulse-N for rank N."""
    meeting: Meeting | None = None
    """None: this host alone."""


def run_once(job: Job, *, asked: Callable[[], signal.Signals | None]) -> Mapping[int, int]:
    """Start the workers and wait for their end: the exit code of each rank that ended by itself but not well.

    `asked` is the signal that they should be sent, each worker once. Not for the main thread, whose signal handlers
    the agent would replace.
    """
    with _quietly():
        try:
            agent = _Agent(job, asked=asked)
            try:
                result = agent.run()
            finally:
                agent.leave()
        except (RendezvousError, DistError) as error:
            if job.meeting is not None:
                raise MeetingError(f"{job.meeting.address}:{job.meeting.port}: {_short(error)}") from error
            raise TandemError(f"Cannot start workers on this host: {error}; look at its network.") from error
    if not result.is_failed():
        return {}
    # One that failed between our look and torch's is known to torch alone.
    return agent.failed or {rank: failure.exitcode for rank, failure in result.failures.items()}


def _spec(job: Job) -> WorkerSpec:
    return WorkerSpec(
        role="rank",
        local_world_size=job.workers,
        rdzv_handler=registry.get_rendezvous_handler(_alone() if job.meeting is None else _with(job.meeting)),
        entrypoint=job.command[0],
        args=tuple(job.command[1:]),
        max_restarts=0,
        monitor_interval=LOOK_S,
        local_addr="localhost" if job.meeting is None else job.meeting.own_address,
    )


def _alone() -> RendezvousParameters:
    return RendezvousParameters(
        backend="c10d",
        endpoint="localhost:0",
        run_id=f"tandem-{os.getpid()}",
        min_nodes=1,
        max_nodes=1,
        local_addr="localhost",
        is_host=True,
    )


def _with(meeting: Meeting) -> RendezvousParameters:
    # Who is who was settled before: a meeting of a given number of hosts, which fails where one does not come.
    return RendezvousParameters(
        backend="static",
        endpoint=f"{_bracketed(meeting.address)}:{meeting.port}",
        run_id=meeting.name,
        min_nodes=meeting.hosts,
        max_nodes=meeting.hosts,
        local_addr=meeting.own_address,
        rank=meeting.rank,
        timeout=JOIN_S,
    )


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class _Environment(LogsSpecs):
    """Adds our environment to that of each worker; they redirect their output themselves."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    @property
    def root_log_dir(self) -> str:
        return os.devnull

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        for environment in envs.values():
            pulse = f"{self._job.pulses}/pulse-{environment['RANK']}"
            environment.update({**self._job.environment, PULSE: pulse})
        inherited = dict.fromkeys(envs, "")
        return LogsDest(stdouts=inherited, stderrs=inherited, error_files=dict.fromkeys(envs, os.devnull))


class _Agent(LocalElasticAgent):
    """Torch's agent, which also passes signals on, and tells those that failed from those that it ended itself."""

    def __init__(self, job: Job, *, asked: Callable[[], signal.Signals | None]) -> None:
        super().__init__(_spec(job), _Environment(job), exit_barrier_timeout=PARTING_S)
        self._asked = asked
        self._told: signal.Signals | None = None
        self.failed: dict[int, int] = {}

    def leave(self) -> None:
        """Close the meeting place."""
        self._rdzv_handler.shutdown()

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        pids = {worker.global_rank: int(worker.id) for worker in worker_group.workers}
        self._pass_on(pids)
        if _failed(pids):
            self._settle(pids)
        result: RunResult = super()._monitor_workers(worker_group)
        return result

    def _pass_on(self, pids: Mapping[int, int]) -> None:
        number = self._asked()
        if number is not None and number != self._told:
            self._told = number
            for pid in _running(pids):
                os.kill(pid, number)

    def _settle(self, pids: Mapping[int, int]) -> None:
        """Let the others end by themselves, so that they can say why; then end them."""
        end_s = time.monotonic() + GRACE_S
        while _running(pids) and time.monotonic() < end_s:
            time.sleep(LOOK_S / 4)
            self._pass_on(pids)
        self.failed = _failed(pids)
        for pid in _running(pids):
            os.killpg(pid, signal.SIGKILL)


def _running(pids: Mapping[int, int]) -> list[int]:
    return [pid for pid in pids.values() if _exit_code(pid) is None]


def _failed(pids: Mapping[int, int]) -> dict[int, int]:
    codes = {rank: _exit_code(pid) for rank, pid in pids.items()}
    return {rank: code for rank, code in codes.items() if code}


def _exit_code(pid: int) -> int | None:
    """Exit code of a worker, negative for a signal, None while it runs; it is left for the agent to collect."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0  # collected already, and the agent goes on after good ends only
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep torch's talk off the terminal: what matters is in exit codes and reports."""
    logger = logging.getLogger("torch.distributed")
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate
