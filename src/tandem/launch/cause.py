"""Which of several failures of one start was the first, and what to tell the person."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from tandem.launch.report import Failure, Kind
from tandem.launch.stall import Stall
from tandem.launch.worker import output_file

__all__ = ["Cause", "Naming", "find_cause", "host_lost", "local_naming", "stalled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How ranks are called in a sentence, and where to read what one of them printed."""

    output: Callable[[int], str]
    host: Callable[[int], str] = lambda rank: ""  # noqa: ARG005
    """Empty in a run on one host."""

    def who(self, rank: int) -> str:
        """The rank as the subject of a sentence."""
        host = self.host(rank)
        return f"Rank {rank} on {host}" if host else f"Rank {rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why the workers ended."""

    rank: int
    exit_code: int
    reason: str
    """A whole sentence for the person if it is final, else what happened."""
    is_final: bool
    """Whether another start would only fail again."""
    who: str = ""
    """To whom it happened."""
    host: str = ""
    """Where, in a run on several hosts."""
    hint: str = ""
    """Where to look."""


def local_naming(output: Path) -> Naming:
    """On one host: a rank is its number, and prints into a file of this folder."""
    return Naming(output=lambda rank: str(output_file(output, rank)))


def find_cause(failed: Mapping[int, int], failures: Mapping[int, Failure], *, naming: Naming) -> Cause | None:
    """From exit codes of the ranks that failed, and what they reported; None if all ended well."""
    if not failed:
        return None
    if told := _first(failures, "sentence"):
        return Cause(rank=told.rank, exit_code=1, reason=told.message, is_final=True)
    if killed := [rank for rank, code in failed.items() if code < 0]:
        return _killed(killed[0], failed[killed[0]], naming)
    if unexpected := _first(failures, "unexpected"):
        return _unexpected(unexpected.rank, unexpected.message, naming)
    if silent := [rank for rank in failed if rank not in failures]:
        return _unexpected(silent[0], f"exit code {failed[silent[0]]}", naming)
    peer = min(failures.values(), key=attrgetter("time_s"))
    return _loss(peer.rank, f"no connection to another rank ({peer.message})", naming)


def stalled(stall: Stall, naming: Naming) -> Cause:
    """A start in which nothing moved any more."""
    return _loss(stall.rank, str(stall), naming, exit_code=-signal.SIGKILL)


def host_lost(host: str, *, rank: int, reason: str) -> Cause:
    """A whole host is gone; `rank` is the first of its ranks."""
    return Cause(
        rank=rank,
        exit_code=-signal.SIGKILL,
        reason=reason,
        is_final=False,
        who=host,
        host=host,
        hint="look at that host and its link",
    )


def _first(failures: Mapping[int, Failure], kind: Kind) -> Failure | None:
    ours = [failure for failure in failures.values() if failure.kind == kind]
    return min(ours, key=attrgetter("time_s"), default=None)


def _killed(rank: int, code: int, naming: Naming) -> Cause:
    guess = ", most likely for want of memory" if -code == signal.SIGKILL else ""
    return _loss(rank, f"killed by {_name(-code)}{guess}", naming, exit_code=code)


def _name(number: int) -> str:
    # Not every signal has a name: of the real-time ones, the first and the last.
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _loss(rank: int, reason: str, naming: Naming, *, exit_code: int = 1) -> Cause:
    return Cause(
        rank=rank,
        exit_code=exit_code,
        reason=reason,
        is_final=False,
        who=naming.who(rank),
        host=naming.host(rank),
        hint=f"what it printed is in {naming.output(rank)}",
    )


def _unexpected(rank: int, message: str, naming: Naming) -> Cause:
    reason = f"{naming.who(rank)} failed with {message}: what it printed is in {naming.output(rank)}."
    return Cause(rank=rank, exit_code=1, reason=reason, is_final=True)
