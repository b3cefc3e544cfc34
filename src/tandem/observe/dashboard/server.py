"""The dashboard's process: serves until it is asked to end, and ends at once."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from tandem.observe.dashboard.app import Dashboard

__all__ = ["serve_dashboard"]

GRACE_S = 1
"""For answers that are being made when the end is asked for; streams end by themselves."""
MOST_CONNECTIONS = 256


class _Server(uvicorn.Server):
    """Ends on SIGTERM or Ctrl-C, also with open streams."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end on a signal; those that come later change nothing."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (uvicorn's)
        """End, however often it is asked."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything."""
        self._dashboard.ending.set()
        await super().shutdown(sockets)


def serve_dashboard(
    app: Starlette, dashboard: Dashboard, bound: socket.socket, *, on_start: Callable[[], None] = lambda: None
) -> None:
    """Serve until a signal asks for the end; `on_start` is called when the first request can come.

    The process is to end then: signals stay without effect.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config, dashboard)

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            on_start()
        await serving

    asyncio.run(run())
