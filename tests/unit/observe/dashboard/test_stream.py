"""A stream to one page: what a page that does not read is spared, and how a stream ends."""

import asyncio
from pathlib import Path
from typing import Any

from starlette.types import Message
from tests.unit.observe.dashboard.serving import DEADLINE_S, QUICK

from tandem.observe.dashboard import stream
from tandem.observe.dashboard.follower import Follower
from tandem.observe.dashboard.stream import Stream

SCOPE: dict[str, Any] = {"type": "http", "method": "GET"}


class Client:
    """Takes what is sent when the test lets it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.reads, self.gone = asyncio.Event(), asyncio.Event()

    async def send(self, message: Message) -> None:
        if message.get("body"):
            await self.reads.wait()
        self.messages.append(message)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.messages if message.get("body")]

    async def until(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.bodies) < count:
                await asyncio.sleep(0.005)


def follower(tmp_path: Path) -> Follower:
    """Of a run that says nothing by itself."""
    return Follower(tmp_path / "run", key="run", pace=QUICK)


def test_a_page_that_does_not_read_gets_the_newest_of_each_kind_only(tmp_path: Path) -> None:
    async def tell() -> list[bytes]:
        run, client = follower(tmp_path), Client()
        task = asyncio.create_task(
            Stream(run, [], ending=asyncio.Event())(SCOPE, client.receive, client.send)
        )
        client.reads.set()
        await client.until(2)
        client.reads.clear()
        for number in range(500):
            run.board.put("findings", [number] * 1_000)
            run.board.put("figures", {"names": [str(number)]})
        await asyncio.sleep(0)
        before = len(client.bodies)
        client.reads.set()
        await client.until(before + 2)
        client.gone.set()
        await asyncio.wait_for(task, DEADLINE_S)
        return [*client.bodies[before:], *([b"still seen"] if run.board.is_seen else [])]

    told = [body for body in asyncio.run(tell()) if not body.startswith(b"event: state")]
    assert b"still seen" not in told
    assert len(told) <= 4
    assert any(b'["499"]' in body for body in told)


def test_a_stream_that_has_nothing_to_tell_says_that_it_is_there(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(stream, "SILENCE_S", 0.01)

    async def tell() -> list[bytes]:
        client = Client()
        client.reads.set()
        ending = asyncio.Event()
        task = asyncio.create_task(
            Stream(follower(tmp_path), [], ending=ending)(SCOPE, client.receive, client.send)
        )
        async with asyncio.timeout(DEADLINE_S):
            while stream.COMMENT not in client.bodies:
                await asyncio.sleep(0.005)
        ending.set()
        await asyncio.wait_for(task, DEADLINE_S)
        assert client.messages[-1] == {"type": "http.response.body", "body": b""}
        return client.bodies

    assert asyncio.run(tell())[0] == stream.RETRY
