"""One start of the ranks on several hosts, from the first word to the last."""

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from tandem.launch.cause import Cause, Naming, find_cause, host_lost, stalled
from tandem.launch.channel import Message
from tandem.launch.member import Member
from tandem.launch.pace import GRACE_S
from tandem.launch.report import Failure, read_failure
from tandem.launch.stall import Stall, Standing, Watchdog
from tandem.launch.worker import output_file

__all__ = ["Round"]

_Told = TypeVar("_Told")


class Round:
    """Who takes part, who has ended and how, and whether it should end.

    It ends everywhere as soon as it has ended badly anywhere.
    """

    def __init__(self, number: int, members: Sequence[Member], *, task_run: str) -> None:
        self.number, self._members, self._run = number, tuple(members), task_run
        self.gone: dict[str, str] = {}
        """Hosts that were lost, and how."""
        self._ended: dict[str, Message] = {}
        self._dog = Watchdog(time.monotonic())
        self._stall: Stall | None = None
        self._is_blind = False
        self._is_ending = False
        self._makes_room = False
        self._told: signal.Signals | None = None
        self._first_ranks: dict[str, int] = {}
        count = 0
        for member in self._members:
            self._first_ranks[member.name] = count
            count += member.workers

    @property
    def names(self) -> frozenset[str]:
        """The hosts that take part."""
        return frozenset(self._first_ranks)

    @property
    def is_over(self) -> bool:
        """Whether all have ended or are lost."""
        return self.names <= self._ended.keys() | self.gone.keys()

    def start(
        self,
        *,
        meeting: Message | None,
        command: Sequence[str],
        received: Mapping[str, Mapping[str, int]],
        is_explicit: bool,
    ) -> None:
        """Tell all hosts to start.

        `meeting` is where the ranks find each other: the ends of a mesh, an address on a trusted network, or nothing
        for ranks on one host; `received` has the hosts that send the log of their disk, and how much of it is there;
        with `is_explicit` the interface counts more than the environment.
        """
        for number, member in enumerate(self._members):
            interface = {"GLOO_SOCKET_IFNAME": member.nic, "NCCL_SOCKET_IFNAME": f"={member.nic}"}
            interface = interface if member.nic and len(self._members) > 1 else {}
            member.send(
                {
                    "do": "run",
                    "round": self.number,
                    "meeting": None if meeting is None else {**meeting, "own": number},
                    "first_rank": self._first_ranks[member.name],
                    "world_size": sum(each.workers for each in self._members),
                    "workers": member.workers,
                    "command": list(command),
                    "found": interface,
                    "environment": interface if is_explicit else {},
                    "received": received.get(member.name),
                }
            )

    def take(self, host: str, message: Message) -> None:
        """Hear from a host."""
        if message.get("round") != self.number or host not in self.names:
            return
        if message["is"] == "beat" and message["pulses"] is None:
            self._is_blind = True
        elif message["is"] == "beat":
            standings = {int(rank): Standing(**held) for rank, held in message["pulses"].items()}
            self._dog.take(self._own(host, standings), time.monotonic())
        elif message["is"] == "ended":
            self._ended[host] = message
            if message["failed"] or message["missed"]:
                self._end()

    def lose(self, host: str, reason: str) -> None:
        """A host is gone; the others cannot go on without it, and have nothing to say to that."""
        if host not in self._ended:
            self.gone.setdefault(host, reason)
            self._end(grace_s=0.0)

    def look(self, now_s: float) -> None:
        """End the round where nothing moves any more."""
        if self._stall is None and not self._is_ending and not self._is_blind:
            self._stall = self._dog.maybe_stall(now_s)
            if self._stall is not None:
                self._end(grace_s=0.0)

    def pass_on(self, asked: signal.Signals | None) -> None:
        """Send the ranks the signal that somebody asked for, once."""
        if asked is not None and asked != self._told:
            self._told = asked
            self._tell({"do": "signal", "number": int(asked)})

    def make_room(self) -> None:
        """A host came back: save, and start again with it, but not before this start was of any use."""
        if self._dog.has_stepped and not (self._makes_room or self._is_ending or self._told):
            self._makes_room = True
            self._tell({"do": "signal", "number": int(signal.SIGTERM)})

    def outcome(self) -> Cause | Literal["again"] | None:
        """Why it ended; "again" where it was meant to end and go on with more hosts."""
        failures = self._failures()
        failed = {
            rank: code
            for host, ending in self._ended.items()
            for rank, code in self._own(
                host, {int(rank): code for rank, code in ending["failed"].items()}
            ).items()
            if not ending["was_ended"] or rank in failures
        }
        naming = Naming(host=self._host_of, output=self._output)
        cause = find_cause(failed, failures, naming=naming)
        if cause is not None and cause.is_final:
            return cause
        if self._stall is not None:
            return stalled(self._stall, naming)
        if self.gone:
            host, reason = next(iter(self.gone.items()))
            return host_lost(host, rank=self._first_ranks[host], reason=reason + self._place())
        if cause is None and (
            missed := {host: each["missed"] for host, each in self._ended.items() if each["missed"]}
        ):
            host, reason = next(iter(missed.items()))
            return host_lost(
                host, rank=self._first_ranks[host], reason=f"its workers could not start: {reason}"
            )
        if cause is None and self._told is None:
            return "again" if self._makes_room else self._maybe_stopped(failures)
        return cause

    def _maybe_stopped(self, failures: Mapping[int, Failure]) -> Cause | None:
        """Ranks that saved and ended, but not because we asked: their host shuts down, or has lost us."""
        for failure in failures.values():
            if failure.kind == "stopped":
                host = self._host_of(failure.rank)
                return host_lost(host, rank=failure.rank, reason=f"its ranks got {failure.message}")
        return None

    def _failures(self) -> dict[int, Failure]:
        offsets = {member.name: member.offset_s for member in self._members}
        failures: dict[int, Failure] = {}
        for host, ending in self._ended.items():
            reported = {failure.rank: failure for failure in map(read_failure, ending["failures"])}
            for rank, failure in self._own(host, reported).items():
                failures[rank] = replace(failure, time_s=failure.time_s + offsets[host])
        return failures

    def _own(self, host: str, by_rank: Mapping[int, _Told]) -> dict[int, _Told]:
        """What a host said of its own ranks; it cannot speak for those of others."""
        first = self._first_ranks[host]
        count = next(member.workers for member in self._members if member.name == host)
        return {rank: told for rank, told in by_rank.items() if first <= rank < first + count}

    def _end(self, grace_s: float = GRACE_S) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._tell({"do": "end", "grace_s": grace_s})

    def _tell(self, message: Message) -> None:
        for member in self._members:
            if member.name not in self.gone and member.name not in self._ended:
                member.send(message)

    def _place(self) -> str:
        """Where the run was."""
        standings = self._dog.standings.values()
        if not standings:
            return ""
        furthest = max(standings, key=lambda each: (each.step, each.begun))
        collective = f", the last collective being {furthest.collective}" if furthest.collective else ""
        return f" in step {furthest.step:,}{collective}"

    def _host_of(self, rank: int) -> str:
        return next(name for name, first in reversed(self._first_ranks.items()) if first <= rank)

    def _output(self, rank: int) -> str:
        return f"{self._host_of(rank)}:{output_file(Path(self._run) / 'log', rank)}"
