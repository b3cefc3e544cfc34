"""What a worker tells its supervisor when it fails: a datagram, which needs no disk space and outlives nobody."""

import json
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from threading import Lock, Thread
from typing import Literal, Self, cast, get_args

from tandem.errors import TandemError
from tandem.launch.local_socket import CREDENTIALS, is_own_sender, short_name

__all__ = ["Failure", "Kind", "Reports", "read_failure", "send_report"]

_LONGEST = 30_000
"""Bytes of a message: written as JSON, where a byte may take six, it still fits into a datagram."""
_LARGEST = 1 << 18
_MOST_AT_ONCE = 10_000
_MOST_RANKS = 1 << 16
_PATIENCE_S = 5.0
_LATEST_S = 1e12

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


def read_failure(document: object) -> Failure:
    """A failure that another process described; ValueError where it makes no sense."""
    match document:
        case {
            "rank": int(rank),
            "kind": str(kind),
            "message": str(message),
            "time_s": int() | float() as time_s,
        }:
            if 0 <= rank < _MOST_RANKS and kind in get_args(Kind) and abs(time_s) < _LATEST_S:
                return Failure(
                    rank=int(rank), kind=cast("Kind", kind), message=_shortened(message), time_s=float(time_s)
                )
    raise ValueError("this describes no failure of a rank")


def send_report(address: str, *, rank: int, kind: Kind, message: str) -> None:
    """Tell the supervisor at `address`; it may be gone."""
    failure = Failure(rank=rank, kind=kind, message=_shortened(message), time_s=time.time())
    data = json.dumps(asdict(failure), ensure_ascii=False).encode()
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_PATIENCE_S)  # many may fail at once
        with short_name(Path(address)) as name:
            sender.sendto(data, name)


class Reports:
    """Where the workers' failures arrive; read as they come, since few fit into the system's queue."""

    def __init__(self, folder: Path) -> None:
        """Listen in a folder, which only this user may enter."""
        self._path = folder / f"reports-{token_hex(4)}"
        self.address = str(self._path.absolute())
        self._failures: dict[int, Failure] = {}
        self._lock = Lock()
        self._socket = _bind(self._path)
        self._end, self._ended = socket.socketpair()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()
        self._thread.join()
        self._ended.close()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def received(self) -> Mapping[int, Failure]:
        """The first failure of each rank, of those that were sent since the last call."""
        with self._lock:
            self._read()
            failures, self._failures = self._failures, {}
        return failures

    def _listen(self) -> None:
        while True:
            readable, _, _ = select.select([self._socket, self._ended], [], [])
            if self._ended in readable:
                return
            with self._lock:
                self._read()

    def _read(self) -> None:
        """Take what has arrived; what is no failure, or comes from another user, is passed over."""
        for _ in range(_MOST_AT_ONCE):
            try:
                data, ancillary, _, _ = self._socket.recvmsg(_LARGEST, socket.CMSG_SPACE(CREDENTIALS.size))
            except OSError:
                return
            if not is_own_sender(ancillary):
                continue
            # Many brackets in one another are a RecursionError.
            with suppress(ValueError, RecursionError):
                failure = read_failure(json.loads(data))
                self._failures.setdefault(failure.rank, failure)


def _bind(path: Path) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.setblocking(False)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    try:
        with short_name(path) as name:
            receiver.bind(name)
    except OSError as error:
        receiver.close()
        raise TandemError(
            f"Cannot make a socket in {path.parent}: {error.strerror}; set TMPDIR to a folder on a local disk."
        ) from error
    return receiver


def _shortened(message: str) -> str:
    """At most so many bytes, all of which can be written as UTF-8."""
    return message.encode(errors="backslashreplace")[:_LONGEST].decode(errors="ignore")
