"""Which of several failures of one start was the first, and what to tell the person."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tandem.launch.report import Failure, Kind
from tandem.launch.worker import output_file

__all__ = ["Cause", "find_cause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why the workers ended."""

    rank: int
    exit_code: int
    reason: str
    """A whole sentence for the person if it is final, else what happened to the rank."""
    is_final: bool
    """Whether another start would only fail again."""


def find_cause(failed: Mapping[int, int], failures: Mapping[int, Failure], *, output: Path) -> Cause | None:
    """From exit codes of the ranks that failed, and what they reported; None if all ended well."""
    if not failed:
        return None
    if told := _first(failures, "sentence"):
        return Cause(rank=told.rank, exit_code=1, reason=told.message, is_final=True)
    if killed := [rank for rank, code in failed.items() if code < 0]:
        return _killed(killed[0], failed[killed[0]])
    if unexpected := _first(failures, "unexpected"):
        return _unexpected(unexpected.rank, unexpected.message, output)
    if silent := [rank for rank in failed if rank not in failures]:
        return _unexpected(silent[0], f"exit code {failed[silent[0]]}", output)
    peer = min(failures.values(), key=attrgetter("time_s"))
    reason = f"no connection to another rank ({peer.message})"
    return Cause(rank=peer.rank, exit_code=1, reason=reason, is_final=False)


def _first(failures: Mapping[int, Failure], kind: Kind) -> Failure | None:
    ours = [failure for failure in failures.values() if failure.kind == kind]
    return min(ours, key=attrgetter("time_s"), default=None)


def _killed(rank: int, code: int) -> Cause:
    guess = ", most likely for want of memory" if -code == signal.SIGKILL else ""
    reason = f"killed by {signal.Signals(-code).name}{guess}"
    return Cause(rank=rank, exit_code=code, reason=reason, is_final=False)


def _unexpected(rank: int, message: str, output: Path) -> Cause:
    reason = f"Rank {rank} failed with {message}: what it printed is in {output_file(output, rank)}."
    return Cause(rank=rank, exit_code=1, reason=reason, is_final=True)
