"""Batches across requests: together, fair, bounded, and no request spoils another."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.serve.fake import DEADLINE_S, Fake

from tandem.errors import TandemError
from tandem.serve.batcher import BATCH_CHARACTERS, Batched, Batcher, QueueFull
from tandem.translate.wish import Wish

LONG = "word " * (BATCH_CHARACTERS // 5 + 1)
"""Fills a batch alone."""


def batched(
    fake: Fake, work: Callable[[Batcher], Awaitable[None]], *, most_lines: int = 100
) -> list[Batched]:
    told: list[Batched] = []

    async def run() -> None:
        async with Batcher(fake, most_lines=most_lines, on_batch=told.append) as batcher:
            await asyncio.wait_for(work(batcher), DEADLINE_S)

    asyncio.run(run())
    return told


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_requests_that_come_together_share_a_batch_and_get_their_own_translations() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        jobs = [batcher.submit([f"a {number}", f"b {number}"], Wish()) for number in range(5)]
        for number, job in enumerate(jobs):
            assert [each.text for each in await job.done] == [f"{number}! a!", f"{number}! b!"]

    told = batched(fake, work)
    assert [(each.lines, each.pieces, each.characters) for each in told] == [(10, 20, 30)]


def test_a_long_request_does_not_hold_up_a_short_one() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        long = batcher.submit([LONG] * 4, Wish())
        short = batcher.submit(["short"], Wish())
        await short.done
        assert not long.done.done()
        assert len(await long.done) == 4

    batched(fake, work)
    assert [len(lines) for lines, _ in fake.batches] == [1, 2, 1, 1]


def test_what_is_wished_differently_is_translated_apart_and_by_turns() -> None:
    fake = Fake()
    narrow, wide = Wish(beam=1), Wish(beam=8)

    async def work(batcher: Batcher) -> None:
        jobs = [
            batcher.submit([LONG, "a"], narrow),
            batcher.submit(["b"], wide),
            batcher.submit(["c"], narrow),
        ]
        await asyncio.gather(*(job.done for job in jobs))

    batched(fake, work)
    assert [({*lines}, wish) for lines, wish in fake.batches] == [
        ({LONG}, narrow),
        ({"b"}, wide),
        ({"a", "c"}, narrow),
    ]


def test_a_wide_search_has_fewer_lines_in_a_batch() -> None:
    fake = Fake()
    line = "x" * (BATCH_CHARACTERS // 16)

    async def work(batcher: Batcher) -> None:
        for beam in (1, 8):
            await batcher.submit([line] * 16, Wish(beam=beam)).done

    batched(fake, work)
    assert [(len(lines), wish.beam) for lines, wish in fake.batches] == [(16, 1), *[(2, 8)] * 8]


def test_a_full_queue_takes_no_more_until_lines_are_taken() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        fake.open.clear()
        first = batcher.submit(["x"] * 9, Wish())  # more than may wait, but none waits before
        await until(lambda: len(fake.batches) == 1)
        second = batcher.submit(["y"] * 3, Wish())
        with pytest.raises(QueueFull):
            batcher.submit(["z"] * 2, Wish())
        assert batcher.waiting_lines == 3
        third = batcher.submit(["z"], Wish())
        fake.open.set()
        await asyncio.gather(first.done, second.done, third.done)
        assert batcher.waiting_lines == 0

    batched(fake, work, most_lines=4)


def test_a_dropped_request_is_not_translated() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        fake.open.clear()
        first = batcher.submit(["first"], Wish())
        await until(lambda: len(fake.batches) == 1)
        gone, stays = batcher.submit(["gone"], Wish()), batcher.submit(["stays"], Wish())
        batcher.drop(gone)
        fake.open.set()
        await asyncio.gather(first.done, stays.done)

    batched(fake, work)
    assert [lines for lines, _ in fake.batches] == [["first"], ["stays"]]


def test_a_request_dropped_in_its_batch_disturbs_nobody() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        fake.open.clear()
        gone, stays = batcher.submit(["gone"], Wish()), batcher.submit(["stays"], Wish())
        await until(lambda: len(fake.batches) == 1)
        batcher.drop(gone)
        fake.open.set()
        assert [each.text for each in await stays.done] == ["stays!"]

    batched(fake, work)


def test_a_line_that_fails_fails_its_request_alone() -> None:
    fake = Fake()

    async def work(batcher: Batcher) -> None:
        jobs = [batcher.submit([text], Wish()) for text in ("good", "unspeakable", "broken", "fine")]
        good, refused, broken, fine = await asyncio.gather(
            *(job.done for job in jobs), return_exceptions=True
        )
        assert isinstance(good, list)
        assert isinstance(fine, list)
        assert (good[0].text, fine[0].text) == ("good!", "fine!")
        assert isinstance(refused, TandemError)
        assert isinstance(broken, ZeroDivisionError)

    batched(fake, work)
