"""The process of a server: answers until a signal asks for the end, whatever clients do with their connections."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import uvicorn

from tandem.web.connection import Connection, ConnectionConfig
from tandem.web.limits import ConnectionLimits, allow_open_files

__all__ = ["Server"]

LOOK_S = 0.5
"""Between two looks at the connections."""


class Server(uvicorn.Server):
    """Ends on SIGTERM or Ctrl-C, however often it is asked, and says nothing by itself."""

    def __init__(
        self, app: Any, *, limits: ConnectionLimits, is_behind_proxy: bool = False, **settings: Any
    ) -> None:
        """The settings are uvicorn's; a proxy on this machine, where there is one, tells who asks."""
        # Errors of ours are told; what clients do wrong is not, lest they fill the log.
        quiet: dict[str, Any] = {
            "log_config": None,
            "log_level": "error",
            "access_log": False,
            "server_header": False,
        }
        proxy: dict[str, Any] = {
            "proxy_headers": is_behind_proxy,
            "forwarded_allow_ips": ["127.0.0.1", "::1"],
        }
        most = allow_open_files()
        super().__init__(
            ConnectionConfig(
                app, limits=limits, most=most, ws="none", loop="asyncio", **quiet, **proxy, **settings
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end on a signal; those that come later, up to the end of the process, change nothing."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (uvicorn's)
        """End in order."""
        self.should_exit = True

    def serve_on(self, bound: socket.socket, *, on_start: Callable[[], None]) -> None:
        """Serve until a signal asks for the end; `on_start` is called when the first request can come.

        The process is to end then: signals stay without effect.
        """
        asyncio.run(self._serve_on(bound, on_start))

    async def _serve_on(self, bound: socket.socket, on_start: Callable[[], None]) -> None:
        serving = asyncio.create_task(self.serve(sockets=[bound]))
        while not self.started and not serving.done():
            await asyncio.sleep(0.01)
        if self.started:
            on_start()
        # Up to the very end, which nobody can put off by a connection.
        looking = asyncio.create_task(self._look())
        try:
            await serving
        finally:
            looking.cancel()

    async def _look(self) -> None:
        while True:
            for each in cast("list[Connection]", list(self.server_state.connections)):
                each.look()
            await asyncio.sleep(LOOK_S)
