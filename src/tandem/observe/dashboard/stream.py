"""A stream of server-sent events to one page, which ends when the page goes or the server does."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import suppress

from starlette.types import Receive, Scope, Send

from tandem.observe.dashboard.follower import Follower

__all__ = ["HEADERS", "Stream"]

SILENCE_S = 10.0
"""Between two lines at most, so that neither end takes the other for dead."""
RETRY = b"retry: 1000\n\n"
COMMENT = b": still here\n\n"
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


class Stream:
    """An ASGI answer. What a slow page has not taken is replaced by what is newer, never piled up."""

    def __init__(self, follower: Follower, figures: Collection[str], *, ending: asyncio.Event) -> None:
        self._follower, self._figures, self._ending = follower, figures, ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        ends = [asyncio.create_task(_gone(receive)), asyncio.create_task(self._ending.wait())]
        telling = asyncio.create_task(self._tell(send))
        try:
            await asyncio.wait([*ends, telling], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ends, telling):
                task.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await telling
        if self._ending.is_set():
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": RETRY, "more_body": True})
        async for data in self._news():
            await send({"type": "http.response.body", "body": data, "more_body": True})

    async def _news(self) -> AsyncIterator[bytes]:
        """Events as they come, and a comment where none does."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: the server ends
                loop.call_soon_threadsafe(news.set)

        with self._follower.viewing(self._figures, wake) as viewer:
            while True:
                news.clear()
                # One by one: what becomes old while a slow page takes the others is not sent.
                while event := viewer.take():
                    yield event
                try:
                    await asyncio.wait_for(news.wait(), SILENCE_S)
                except TimeoutError:
                    yield COMMENT


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
