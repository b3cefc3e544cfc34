"""One host of a run over several, as the head sees it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, Literal

from tandem.launch.channel import GONE, Channel, Message
from tandem.launch.host_message import NonsenseError, check_message
from tandem.launch.hosts import Host
from tandem.launch.mesh import Peer
from tandem.launch.pace import BEAT_S
from tandem.launch.ssh import Ssh

__all__ = ["Letter", "Member"]

FAR = "tandem.launch.far"
RETRY_S = 5.0
"""How often a host that is gone is tried again."""
MOST_WAITING = 256
"""Messages of a host that lie unread; more wait on its side, so that no host can fill the head's memory."""
LONGEST_RETRY_S = 600.0
"""How long at most one that comes and goes is left alone, twice as long each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message with its sender; one of an earlier connection to the same host is told by its number."""

    host: str
    connection: int
    message: Message
    room: Semaphore | None = None
    """What is to be released when it was taken."""

    @property
    def is_foreign(self) -> bool:
        """Whether it was made by the host, which may say anything, and not here."""
        return self.room is not None and self.message["is"] != GONE


@dataclass(slots=True, kw_only=True)
class Member:
    """A host: whether it is there, what it said of itself, and when it was heard of last."""

    host: Host
    ssh: Ssh
    post: SimpleQueue[Letter]
    """Where its messages arrive."""
    state: Literal["absent", "opening", "equipping", "ready"] = "absent"
    facts: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""
    nic: str = ""
    is_private: bool = False
    """Whether its interface is WireGuard's."""
    port: int | None = None
    """Where it listens for the others, or could."""
    certificate: str = ""
    """What proves that it is this host, in the next start."""
    heard_s: float = 0.0
    retry_s: float = 0.0
    """When to try again to reach it."""
    offset_s: float = 0.0
    """How far its clock is behind ours, as far as one message can tell."""
    since_s: float = 0.0
    """When it was connected to."""
    reason: str = ""
    """Why it cannot be used, if it said so."""
    is_flushed: bool = False
    """Whether it has sent all of its log."""
    losses: int = 0
    is_silent: bool = False
    """Whether it was lost without a word; it may be long until it comes back."""
    connection: int = 0
    _channel: Channel | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self.host.name

    @property
    def workers(self) -> int:
        """How many processes it runs."""
        return int(self.facts["workers"])

    def open(self, greeting: Message) -> None:
        """Connect, and say what it is about."""
        self.connection += 1
        number, room = self.connection, Semaphore(MOST_WAITING)
        self.state, self.heard_s, self.since_s = "opening", time.monotonic(), time.monotonic()

        def arrive(message: Message) -> None:
            # Stamped now: the letter may lie for long while the head prepares data.
            self._stamp(number)
            while not room.acquire(timeout=BEAT_S):
                # The host waits with what comes next, and has not fallen silent.
                self._stamp(number)
            self.post.put(Letter(host=self.name, connection=number, message=message, room=room))

        self._channel = Channel(self.ssh.module(self.name, FAR), on_message=arrive)
        self._channel.send(greeting)

    def _stamp(self, connection: int) -> None:
        if connection == self.connection:
            self.heard_s = time.monotonic()

    def send(self, message: Message) -> None:
        """Send, if there is a connection."""
        if self._channel is not None:
            self._channel.send(message)

    @property
    def is_coming(self) -> bool:
        """Whether it is worth waiting for."""
        return self.state == "equipping" or (self.state == "opening" and not self.is_silent)

    @property
    def disk(self) -> str:
        """The disk that its run is on; empty if it is ours."""
        return str(self.facts["disk"])

    def ask_port(self) -> None:
        """Ask for a free port."""
        self.port = None
        self.send({"do": "reserve", "address": self.address})

    def ask_to_listen(self, port: int) -> None:
        """Ask to open its end of the mesh, at any free port for 0."""
        self.port = None
        self.send({"do": "listen", "address": self.address, "port": port})

    def as_peer(self, first_rank: int) -> Peer:
        """The host as the others of a start know it; its ranks are numbered from this one on."""
        assert self.port is not None
        return Peer(
            name=self.name,
            address=self.address,
            port=self.port,
            certificate=self.certificate,
            first_rank=first_rank,
            ranks=self.workers,
        )

    def take(self, letter: Letter) -> None:
        """Hear from it; NonsenseError for what a host of this version does not say, or not now."""
        message = letter.message
        if letter.is_foreign:
            check_message(message)
        match message["is"]:
            case "opened" if self.state != "opening":
                raise NonsenseError("it was opened already")
            case "log" if not self.facts:
                raise NonsenseError("it was not opened yet")
            case "opened":
                self.state, self.facts, self.address, self.is_silent = "ready", message, "", False
                self.offset_s = time.time() - message["time_s"]
            case "flushed":
                self.is_flushed = True
            case "routed":
                self.address, self.nic = message["address"], message["nic"]
                self.is_private = message["is_private"]
            case "reserved":
                self.port = message["port"]
            case "listening":
                self.port, self.certificate = message["port"], message["certificate"]
            case _:
                pass

    def lose(self, *, is_silent: bool = False) -> None:
        """Break the connection off, and try again: at once where only the connection broke, and for the first time."""
        if self._channel is not None:
            self._channel.kill()
        wait_s = RETRY_S
        if self.state == "ready":
            is_first = not self.losses and not is_silent
            wait_s = 0.0 if is_first else min(LONGEST_RETRY_S, RETRY_S * 2**self.losses)
            self.losses += 1
        self.retry_s = time.monotonic() + wait_s
        self.is_silent = self.is_silent or is_silent
        self._channel, self.state = None, "absent"

    def close(self) -> None:
        """Say that nothing more will come."""
        if self._channel is not None:
            self._channel.close()
