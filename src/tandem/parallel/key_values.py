"""The key–value store through which the ranks of several hosts find each other, in place of torch's.

Torch's store takes requests from whoever reaches its port; this one is reached through Unix sockets and the mesh.
"""

import base64
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Condition
from time import monotonic
from typing import Any

__all__ = ["MESH", "STORE", "KeyValues", "LineConnection"]

MESH = "TANDEM_MESH"
"""Environment: the Unix socket of this host's end of the mesh."""
STORE = "TANDEM_STORE"
"""Environment: a file for the store of ranks that are all on one host."""

_LONGEST_LINE = 1 << 20


class LineConnection:
    """Requests and answers, a line of JSON each, over a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """The next line; None at the end. Raises ValueError for anything else than a line with an object."""
        line = self._file.readline(_LONGEST_LINE)
        if not line:
            return None
        try:
            message = json.loads(line) if line.endswith(b"\n") else None
        except RecursionError:
            message = None
        if not isinstance(message, dict):
            raise ValueError("not a line with a JSON object")  # noqa: TRY004 - of what was sent, not of an argument
        return message

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._connection.close()


class KeyValues:
    """The store itself: answers requests from any number of threads."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = Condition()

    def serve(self, lines: LineConnection) -> None:
        """Answer one connection until it ends."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            while (request := lines.receive()) is not None:
                lines.send(self.answer(request))

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a request gives; KeyError or TypeError where it is none."""
        with self._changed:
            match request["do"]:
                case "set":
                    self._put(request["key"], base64.b64decode(request["value"]))
                    return {}
                case "get":
                    value = self._values.get(request["key"])
                    return {"value": None if value is None else base64.b64encode(value).decode()}
                case "add":
                    number = int(self._values.get(request["key"], b"0")) + int(request["amount"])
                    self._put(request["key"], str(number).encode())
                    return {"number": number}
                case "delete":
                    return {"is": self._values.pop(request["key"], None) is not None}
                case "count":
                    return {"number": len(self._values)}
                case "wait":
                    return {"is": self._wait(request["keys"], float(request["timeout_s"]))}
                case other:
                    raise KeyError(other)

    def _put(self, key: str, value: bytes) -> None:
        self._values[key] = value
        self._changed.notify_all()

    def _wait(self, keys: Sequence[str], timeout_s: float) -> bool:
        end_s = monotonic() + timeout_s
        while not all(key in self._values for key in keys):
            remaining_s = end_s - monotonic()
            if remaining_s <= 0:
                return False
            self._changed.wait(remaining_s)
        return True
