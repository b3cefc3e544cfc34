"""The server's process: a port, an orderly end."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from tandem.serve.app import Service

__all__ = ["Drain", "serve_app"]

LAST_CALL_S = 1.0
"""From the end of listening to the end of idle connections: what is on its way on one is still answered."""

SPARE_S = 5.0
"""Beyond the deadline of requests, for those that are being read."""

BACKLOG = 1_024


class Drain(uvicorn.Server):
    """Ends on SIGTERM or Ctrl-C: takes no new connections, answers what was taken on, and is done."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end on a signal; those that come later, up to the end of the process, change nothing."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (uvicorn's)
        """End in order, however often it is asked."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order: every answer from now on says that its connection is over."""
        self._service.is_draining = True
        for server in self.servers:
            server.close()
        until = asyncio.get_running_loop().time() + LAST_CALL_S
        while self.server_state.connections and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def serve_app(
    app: Starlette,
    service: Service,
    bound: socket.socket,
    *,
    deadline_s: float,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal asks for the end; `on_start` is called when the first request can come.

    The process is to end then: signals stay without effect.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=round(deadline_s + SPARE_S),
    )
    server = Drain(config, service)

    async def run() -> None:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            on_start()
        await serving

    asyncio.run(run())
