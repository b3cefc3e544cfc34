"""What a worker tells its supervisor when it fails: a datagram, which needs no disk and outlives nobody."""

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Event, Thread
from typing import Literal, Self

__all__ = ["Failure", "Kind", "Reports", "send_report"]

_LONGEST = 60_000
_PATIENCE_S = 5.0
_MARK, _END = b"mark", b"end"

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
        sender.settimeout(_PATIENCE_S)  # many may fail at once
        sender.sendto(json.dumps(asdict(failure)).encode(), _abstract(address))


class Reports:
    """Where the workers' failures arrive; read as they come, since few fit into the system's queue."""

    def __init__(self) -> None:
        self.address = f"tandem-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(_abstract(self.address))
        self._failures: dict[int, Failure] = {}
        self._seen = Event()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._say(_END)
        self._thread.join()
        self._socket.close()

    def received(self) -> Mapping[int, Failure]:
        """The first failure of each rank, of those that were sent since the last call."""
        self._seen.clear()
        self._say(_MARK)
        self._seen.wait()
        failures, self._failures = self._failures, {}
        return failures

    def _listen(self) -> None:
        while (data := self._socket.recv(1 << 20)) != _END:
            if data == _MARK:
                self._seen.set()
                continue
            with suppress(ValueError, TypeError):  # anybody on this host could send something
                failure = Failure(**json.loads(data))
                self._failures.setdefault(failure.rank, failure)

    def _say(self, word: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(word, _abstract(self.address))


def _abstract(address: str) -> str:
    return f"\0{address}"
