"""The workers of several hosts: one start after another, each with the hosts that are there."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Literal

from tandem import __version__
from tandem.errors import TandemError
from tandem.launch import channel
from tandem.launch.cause import Cause
from tandem.launch.channel import Message
from tandem.launch.host_message import NonsenseError
from tandem.launch.hosts import Host
from tandem.launch.member import Letter, Member
from tandem.launch.mesh import describe_mesh
from tandem.launch.pace import BEAT_S
from tandem.launch.round import Round
from tandem.launch.run_settings import Network, RunSettings
from tandem.launch.ssh import Ssh
from tandem.launch.tail import Collector, Piece
from tandem.runlog.event import HostRefused, RoundStarted
from tandem.runlog.writer import RunLog

__all__ = ["HostCrew"]

OPEN_S = 90.0
"""How long a host may take to start Python and torch, and an earlier start of ours to be gone there."""
ANSWER_S = 20.0
RETURN_S = 15.0
"""How long a start waits for hosts that are on their way back."""
READ_S = 0.5
"""How long messages are taken before other things are looked at."""
WAIT_S = 900.0
"""How long a run waits for hosts when too few are left."""


class HostCrew:
    """Runs the ranks of a run on several hosts over ssh."""

    def __init__(
        self,
        hosts: Sequence[Host],
        task: RunSettings,
        *,
        ssh: Ssh,
        log: RunLog,
        copy: Path,
        equip: Callable[[str], None],
    ) -> None:
        """Nothing is started yet.

        `copy` is the folder for the logs of hosts that do not share ours; `equip` gives a host that came back what
        it needs, or raises TandemError.
        """
        self._post: SimpleQueue[Letter] = SimpleQueue()
        self._members = {host.name: Member(host=host, ssh=ssh, post=self._post) for host in hosts}
        self._task, self._ssh, self._log, self._equip = task, ssh, log, equip
        self._collector = Collector(copy)
        self._rounds = 0
        self._newest: int | None = None
        self._last_loss = ""
        self._closed = Event()
        Thread(target=self._beat, daemon=True).start()

    @property
    def newest_step(self) -> int | None:
        """The newest checkpoint that a host spoke of."""
        return self._newest

    @property
    def workers(self) -> int:
        """How many ranks there are when all hosts are."""
        return sum(member.workers for member in self._members.values())

    def connect(self) -> None:
        """Reach all hosts for the first time; TandemError names the one that cannot be used, and why."""
        for member in self._members.values():
            member.open(self._greeting(member))
        self._await(lambda: not any(each.state == "opening" for each in self._members.values()), OPEN_S)
        for member in self._members.values():
            if member.state != "ready":
                raise TandemError(f"{member.name} does not answer within {OPEN_S:.0f} s: look at that host.")
        self._find_routes(list(self._members.values()))

    def attempt(self, asked: Callable[[], signal.Signals | None]) -> Cause | None:
        """Start the ranks and wait for their end, also where hosts come back and are taken in on the way."""
        while True:
            members = self._gather(asked)
            if asked() is not None:
                return None
            cause = self._run(members, asked)
            if cause != "again":
                return cause

    def close(self) -> None:
        """Tell all hosts that it is over."""
        self._closed.set()
        for member in self._members.values():
            member.close()

    def _greeting(self, member: Member) -> Mapping[str, object]:
        return {
            "do": "open",
            "name": member.name,
            "folder": self._task.folder,
            "run": self._task.run,
            "recipe": self._task.recipe,
            "token": self._task.token,
            "device": self._task.device,
            "workers": member.host.workers,
            "environment": dict(self._task.environment),
            "silence_s": self._task.silence_s,
        }

    def _beat(self) -> None:
        while not self._closed.wait(BEAT_S):
            for member in self._members.values():
                member.send({"do": "beat"})

    # --- hosts that come and go ---

    def _gather(self, asked: Callable[[], signal.Signals | None]) -> list[Member]:
        """The hosts for the next start, in the order in which they were named; waits while there are too few."""
        begun_s = time.monotonic()
        self._retry()
        while asked() is None:
            waited_s = time.monotonic() - begun_s
            ready = [each for each in self._members.values() if each.state == "ready"]
            coming = any(each.is_coming for each in self._members.values())
            if len(ready) >= self._task.min_hosts and not (coming and waited_s < RETURN_S):
                self._find_routes(ready)
                if all(each.state == "ready" and each.address for each in ready):
                    return ready
                continue
            if waited_s > WAIT_S:
                raise TandemError(self._too_few(ready))
            self._retry()
            self._read(0.5)
        return []

    def _too_few(self, ready: Sequence[Member]) -> str:
        gone = [each for each in self._members.values() if each not in ready]
        reasons = [f"{each.name} ({each.reason})" if each.reason else each.name for each in gone]
        return (
            f"Only {len(ready)} of {len(self._members)} hosts are left and --min-hosts is {self._task.min_hosts}; "
            f"{', '.join(reasons)} did not come back within {WAIT_S / 60:.0f} minutes"
            f"{f' after: {self._last_loss}' if self._last_loss else ''}: mend that, then resume."
        )

    def _retry(self, now: Round | None = None) -> None:
        """Try to reach hosts that are gone, when it is time, and give up those that hang outside of a round."""
        now_s = time.monotonic()
        for member in self._members.values():
            if now is not None and member.name in now.names and member.name not in now.gone:
                continue
            hangs = member.state != "opening" and now_s - member.heard_s > self._task.silence_s
            hangs = hangs or (member.state == "opening" and now_s - member.since_s > OPEN_S)
            if member.state != "absent" and hangs:
                member.lose(is_silent=True)
            if member.state == "absent" and time.monotonic() >= member.retry_s:
                member.open(self._greeting(member))

    def _equip_again(self, member: Member, connection: int) -> None:
        message: Mapping[str, object] = {"is": "equipped"}
        try:
            self._equip(member.name)
        except TandemError as error:
            message = {"is": "refused", "message": str(error)}
        self._post.put(Letter(host=member.name, connection=connection, message=message))

    def _unlike(self, member: Member) -> str:
        """What keeps a host from working with the others; empty where nothing does."""
        facts = member.facts
        if facts["tandem"] != __version__:
            return (
                f"{member.name} has Tandem {facts['tandem']}, this machine {__version__}: install the same."
            )
        for other in self._members.values():
            if other is not member and other.facts and other.facts["identity"] == facts["identity"]:
                both = " and ".join(name for name in self._members if name in (other.name, member.name))
                return f"{both} are the same host: name it once, with a number of workers."
        first = next(each for each in self._members.values() if each.facts)
        for what, cure in (("torch", "install the same"), ("device", "leave one out, or give --device cpu")):
            if facts[what] != first.facts[what]:
                return f"{member.name} has {what} {facts[what]}, {first.name} {first.facts[what]}: {cure}."
        return ""

    def _find_routes(self, members: Sequence[Member]) -> None:
        """Ask each host by which address and interface it reaches another."""
        if all(member.address for member in members):
            return
        seen = {member.name: _own_address(member) for member in members}
        for member in members:
            others = [address for name, address in seen.items() if name != member.name and address]
            target = others[0] if others else seen[member.name]
            member.send({"do": "route", "nic": self._task.nic, "to": target or "127.0.0.1"})
        self._await(lambda: all(each.address or each.state == "absent" for each in members), ANSWER_S)

    # --- one start ---

    def _run(
        self, members: Sequence[Member], asked: Callable[[], signal.Signals | None]
    ) -> Cause | Literal["again"] | None:
        network = self._network_of(members)
        meeting = self._prepare_meeting(members, network)
        if meeting is None and network != "one host":
            return "again"
        self._rounds += 1
        now = Round(self._rounds, members, task_run=self._task.run)
        self._log.log(
            RoundStarted(
                round=now.number,
                hosts=tuple(each.name for each in members),
                workers={each.name: each.workers for each in members},
                address=members[0].address,
                interfaces=tuple(each.nic for each in members),
                network=network,
            )
        )
        command = [
            "tandem.cli.rank",
            self._task.run,
            "--device",
            members[0].facts["device"],
            *self._task.options,
        ]
        senders = {each.disk: each for each in reversed(members) if each.disk}
        now.start(
            meeting=meeting,
            command=command,
            received={each.name: dict(self._collector.offsets(disk)) for disk, each in senders.items()},
            is_explicit=bool(self._task.nic),
        )
        looked_s = time.monotonic()
        while not now.is_over:
            self._read(0.2, now)
            late_s = time.monotonic() - looked_s - self._task.silence_s / 4
            looked_s = time.monotonic()
            if late_s > 0:
                # It was we who slept: nobody else was silent.
                for member in members:
                    member.heard_s += late_s
            now.pass_on(asked())
            for member in members:
                if looked_s - member.heard_s > self._task.silence_s and member.name not in now.gone:
                    member.lose(is_silent=True)
                    now.lose(member.name, f"no sign of life for {self._task.silence_s:.0f} s")
            now.look(looked_s)
            self._retry(now)
            if any(each.state == "ready" and each not in members for each in self._members.values()):
                now.make_room()
        self._collect(list(senders.values()))
        cause = now.outcome()
        if isinstance(cause, Cause):
            self._last_loss = f"{cause.who}: {cause.reason}"
        return cause

    def _collect(self, senders: Sequence[Member]) -> None:
        """Get the rest of the logs."""
        there = [member for member in senders if member.state == "ready"]
        for member in there:
            member.is_flushed = False
            member.send({"do": "flush"})
        self._await(lambda: all(each.is_flushed or each.state != "ready" for each in there), ANSWER_S)
        self._collector.save(at_once=True)

    def _network_of(self, members: Sequence[Member]) -> Network:
        if len(members) == 1:
            return "one host"
        if all(member.is_private for member in members):
            return "wireguard"
        return "trusted" if self._task.is_network_trusted else "mesh"

    def _prepare_meeting(self, members: Sequence[Member], network: Network) -> Message | None:
        """Where the ranks will meet; None if they are on one host, or if a host was lost meanwhile."""
        if network == "one host":
            return None
        asked = members if network == "mesh" else members[:1]
        for member in asked:
            if network == "mesh":
                member.ask_to_listen(self._task.port)
            else:
                member.ask_port()
        self._await(lambda: all(each.port is not None or each.state == "absent" for each in asked), ANSWER_S)
        for member in asked:
            if member.port is None and member.state != "absent":
                member.lose()
        if any(member.port is None for member in asked):
            return None
        if network != "mesh":
            return {"address": members[0].address, "port": self._task.port or members[0].port}
        first_rank, peers = 0, []
        for member in members:
            peers.append(member.as_peer(first_rank))
            first_rank += member.workers
        return describe_mesh(peers)

    # --- messages ---

    def _await(self, is_done: Callable[[], bool], patience_s: float) -> None:
        end_s = time.monotonic() + patience_s
        while not is_done() and time.monotonic() < end_s:
            self._read(0.2)

    def _read(self, patience_s: float, now: Round | None = None) -> None:
        """Take the messages that are there, waiting a little for the first; not for long, since there is more to do."""
        end_s = time.monotonic() + patience_s + READ_S
        try:
            letter = self._post.get(timeout=patience_s)
            while True:
                if letter.room is not None:
                    letter.room.release()
                self._take(letter, now)
                if time.monotonic() > end_s:
                    break
                letter = self._post.get_nowait()
        except Empty:
            pass
        self._collector.save()

    def _take(self, letter: Letter, now: Round | None) -> None:
        member, message = self._members[letter.host], letter.message
        if letter.connection != member.connection or member.state == "absent":
            return
        try:
            member.take(letter)
        except NonsenseError as error:
            self._part(member, {"is": "refused", "message": _nonsense(error)}, now)
            return
        if now is not None:
            now.take(member.name, message)
        match message["is"]:
            case "opened":
                self._welcome(member)
            case "equipped" if member.state == "equipping":
                member.state = "ready"
            case "log":
                piece = Piece(file=message["file"], offset=message["offset"], text=message["text"])
                self._collector.take(member.disk, piece)
            case "ended":
                self._newest = max(self._newest or 0, message["newest"] or 0) or None
                if message["leaves"]:
                    member.lose()
            case "refused" | channel.GONE:
                self._part(member, message, now)

    def _welcome(self, member: Member) -> None:
        """Take a host in if it is like the others: at the very start anything else is an error."""
        reason = self._unlike(member)
        if reason:
            self._refuse(member, reason)
        elif self._rounds:
            # One that came back may have lost its disk.
            member.state = "equipping"
            Thread(target=self._equip_again, args=(member, member.connection), daemon=True).start()

    def _part(self, member: Member, message: Message, now: Round | None) -> None:
        """A host cannot be used, or not any more: at the very start that is an error, later a loss."""
        if now is not None and member.name in now.names:
            member.lose()
            now.lose(member.name, _why_lost(message))
        elif message["is"] == channel.GONE:
            self._refuse(member, self._ssh.explain(member.name, message["code"], message["said"]))
        else:
            self._refuse(member, f"{member.name}: {message['message']}")

    def _refuse(self, member: Member, reason: str) -> None:
        member.lose()
        if not self._rounds:
            raise TandemError(reason)
        if reason != member.reason:
            self._log.log(HostRefused(host=member.name, reason=reason))
        member.reason = reason


def _nonsense(error: NonsenseError) -> str:
    return f"It said something that makes no sense ({error}): install the same version of Tandem there."


def _why_lost(message: Message) -> str:
    """Why a host cannot go on with a round, after its last message."""
    if message["is"] != channel.GONE:
        return "it refused to go on" + (f" ({message['message']})" if message.get("message") else "")
    return f"{message['why']}" if message.get("why") else "its connection broke"


def _own_address(member: Member) -> str:
    """The address at which ssh found the host, unless that is of no use to others."""
    words = member.facts["connection"].split()
    address = words[2] if len(words) == 4 else ""
    return "" if address.startswith("127.") or address == "::1" else address
