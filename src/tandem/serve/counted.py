"""Around every request: counted, and told in a short line."""

from collections.abc import Callable, Collection
from time import perf_counter

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.serve.metrics import Metrics

__all__ = ["Counted"]


class Counted:
    """ASGI middleware; `is_draining` makes answers say that the connection ends with them."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        paths: Collection[str],
        metrics: Metrics,
        say: Callable[[str], None],
        is_draining: Callable[[], bool],
    ) -> None:
        """Of other paths than `paths` nothing is told: anyone can make them up."""
        self._app = app
        self._paths = frozenset(paths)
        self._metrics = metrics
        self._say = say
        self._is_draining = is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = perf_counter()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._is_draining():
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._tell(scope, status, perf_counter() - begun)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in self._paths else "other"
        self._metrics.request(path, status, seconds)
        if scope["method"] == "POST":
            self._say(f"{path} {status} {1000 * seconds:.0f} ms")
