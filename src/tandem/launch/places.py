"""Places for those who connect and have not said yet who they are."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from tandem.launch.streams import end

__all__ = ["Places"]


class Places:
    """So many at once; who comes when all are taken gets the place of the one who has been silent for longest.

    Whoever belongs here says so as soon as the network allows, and those who hold places to keep him out lose them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._held: dict[socket.socket, None] = {}

    @contextmanager
    def taken(self, connection: socket.socket) -> Iterator[None]:
        """Have a place inside the block; a connection that loses it is ended."""
        with self._lock:
            self._held[connection] = None
            oldest = next(iter(self._held)) if len(self._held) > self._most else None
            if oldest is not None:
                del self._held[oldest]
                end(oldest)
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(connection, None)
