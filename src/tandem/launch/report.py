"""What a worker tells its supervisor when it fails: a datagram, which needs no disk and outlives nobody."""

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Literal, Self

__all__ = ["Failure", "Kind", "Reports", "send_report"]

_LONGEST = 60_000

Kind = Literal["sentence", "peer", "unexpected", "stopped"]
"""A sentence for the person; a lost connection to another rank; anything else; no failure, but a signal to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a rank ended before its work was done."""

    rank: int
    kind: Kind
    message: str
    time_s: float
    """Since 1970: of several failures the first is the cause."""


def send_report(address: str, *, rank: int, kind: Kind, message: str) -> None:
    """Tell the supervisor at `address`; it may be gone."""
    failure = Failure(rank=rank, kind=kind, message=message[:_LONGEST], time_s=time.time())
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)  # where many fail at once the first reports are enough
        sender.sendto(json.dumps(asdict(failure)).encode(), _abstract(address))


class Reports:
    """Where the workers' failures arrive."""

    def __init__(self) -> None:
        self.address = f"tandem-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(_abstract(self.address))
        self._socket.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def received(self) -> Mapping[int, Failure]:
        """The first failure of each rank, of those that arrived since the last call."""
        failures: dict[int, Failure] = {}
        with suppress(BlockingIOError):
            while True:
                failure = Failure(**json.loads(self._socket.recv(1 << 20)))
                failures.setdefault(failure.rank, failure)
        return failures


def _abstract(address: str) -> str:
    return f"\0{address}"
