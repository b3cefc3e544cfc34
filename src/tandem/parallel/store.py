"""A rank's connection to the store of its run, over a Unix socket in a folder that only its user can enter."""

import base64
import socket
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from tandem.parallel.key_values import LineConnection

__all__ = ["RankStore", "StoreError"]

_ANSWER_S = 30.0
"""How long an answer may take beyond the time that the store was asked to wait."""


class StoreError(dist.DistStoreError):
    """The store does not answer, or not in time."""


class RankStore(Store):
    """A rank's view of the store, in torch's terms."""

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        """Connect at this Unix socket; no answer is waited for much longer than the timeout."""
        super().__init__()
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        self._lines = LineConnection(self._socket)
        self._ask({"do": "store"}, timeout_s)

    def set(self, key: str, value: bytes | str) -> None:
        """Give a key a value."""
        data = value if isinstance(value, bytes) else value.encode()
        self._ask({"do": "set", "key": key, "value": base64.b64encode(data).decode()})

    def get(self, key: str) -> bytes:
        """The value of a key, once somebody has given it one."""
        self.wait([key])
        return base64.b64decode(self._ask({"do": "get", "key": key})["value"])

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first, and give the sum."""
        return int(self._ask({"do": "add", "key": key, "amount": amount})["number"])

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all these keys have values."""
        return bool(self._ask({"do": "wait", "keys": list(keys), "timeout_s": 0.0})["is"])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return when all these keys have values."""
        timeout_s = self._timeout_s if timeout is None else timeout.total_seconds()
        if not self._ask({"do": "wait", "keys": list(keys), "timeout_s": timeout_s}, timeout_s)["is"]:
            raise StoreError(f"not all ranks came within {timeout_s:.0f} s")

    def delete_key(self, key: str) -> bool:
        """Take a key out; gives whether it was there."""
        return bool(self._ask({"do": "delete", "key": key})["is"])

    def num_keys(self) -> int:
        """How many keys have values."""
        return int(self._ask({"do": "count"})["number"])

    def set_timeout(self, timeout: timedelta) -> None:
        """How long to wait for keys from now on."""
        self._timeout_s = timeout.total_seconds()

    def _ask(self, request: Mapping[str, Any], timeout_s: float = 0.0) -> dict[str, Any]:
        with self._lock:
            self._socket.settimeout(timeout_s + _ANSWER_S)
            try:
                self._lines.send(request)
                answer = self._lines.receive()
            except (OSError, ValueError) as error:
                raise StoreError(f"the store of the ranks does not answer ({error})") from error
        if answer is None or "error" in answer:
            reason = "it closed the connection" if answer is None else answer["error"]
            raise StoreError(f"the store of the ranks does not answer ({reason})")
        return answer
