"""Lines of many requests translated together: a bounded queue, and batches that are fair to all requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Self

from tandem.serve.served import LineTranslator
from tandem.translate.translator import Translation
from tandem.translate.wish import Wish

__all__ = ["Batched", "Batcher", "Job", "QueueFull"]

LINGER_S = 0.003
"""A batch that is not full waits so long for more: short beside a translation."""

BATCH_CHARACTERS = 32_768
"""Times the beam. At a beam of 4 about two thousand pieces: enough for a processor's matrix units, and done soon."""


class QueueFull(Exception):  # noqa: N818  (nothing is wrong: the request may come again)
    """As many lines wait as may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batched:
    """What is told of a batch."""

    lines: int
    characters: int
    pieces: int
    seconds: float


class Job:
    """The lines of a request on their way."""

    def __init__(self, lines: Sequence[str], wish: Wish) -> None:
        self.lines = lines
        self.wish = wish
        self.waiting = deque(range(len(lines)))
        """Numbers of the lines that are in no batch yet."""
        self.done: asyncio.Future[list[Translation]] = asyncio.get_running_loop().create_future()
        self._found: dict[int, Translation] = {}

    def settle(self, number: int, outcome: Translation | Exception) -> None:
        """Take the outcome of a line; the first that fails ends the job."""
        if self.done.done():  # dropped while it was translated
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
            return
        self._found[number] = outcome
        if len(self._found) == len(self.lines):
            self.done.set_result([self._found[place] for place in range(len(self.lines))])


class Batcher:
    """Translates with one model in a thread of its own, one batch after the other."""

    def __init__(
        self, translator: LineTranslator, *, most_lines: int, on_batch: Callable[[Batched], None]
    ) -> None:
        """At most `most_lines` wait; `on_batch` is told of each batch when it is done."""
        self._translator = translator
        self._most_lines = most_lines
        self._on_batch = on_batch
        self._jobs: deque[Job] = deque()
        self._waiting = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="translate")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_lines(self) -> int:
        """Lines that are in no batch yet."""
        return sum(len(job.waiting) for job in self._jobs)

    @property
    def is_alive(self) -> bool:
        """Whether lines that are queued will be translated."""
        return self._task is not None and not self._task.done()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        self._thread.shutdown(wait=False, cancel_futures=True)

    def submit(self, lines: Sequence[str], wish: Wish) -> Job:
        """Queue lines; an empty queue takes any number of them."""
        waiting = self.waiting_lines
        if waiting and waiting + len(lines) > self._most_lines:
            raise QueueFull
        job = Job(lines, wish)
        self._jobs.append(job)
        self._waiting.set()
        return job

    def drop(self, job: Job) -> None:
        """Forget a job that nobody waits for any more; lines in a batch are translated to its end."""
        job.waiting.clear()
        job.done.cancel()
        if job in self._jobs:
            self._jobs.remove(job)

    async def _run(self) -> None:
        while True:
            await self._waiting.wait()
            await asyncio.sleep(LINGER_S)
            batch = self._take()
            if not self._jobs:
                self._waiting.clear()
            if batch:
                await self._translate(batch)

    def _take(self) -> list[tuple[Job, int]]:
        """Lines of all jobs that wish what the first does, one of each in turn: long jobs hold up no short ones."""
        if not self._jobs:
            return []
        wish = self._jobs[0].wish
        others = [job for job in self._jobs if job.wish != wish]
        turns = deque(job for job in self._jobs if job.wish == wish)
        batch: list[tuple[Job, int]] = []
        characters = 0
        while turns and characters < BATCH_CHARACTERS:
            job = turns.popleft()
            number = job.waiting.popleft()
            batch.append((job, number))
            characters += (len(job.lines[number]) + 1) * wish.beam
            if job.waiting:
                turns.append(job)
        self._jobs = deque([*others, *turns])
        return batch

    async def _translate(self, batch: list[tuple[Job, int]]) -> None:
        lines = [job.lines[number] for job, number in batch]
        begun = perf_counter()
        loop = asyncio.get_running_loop()
        outcomes = await loop.run_in_executor(self._thread, self._attempt, lines, batch[0][0].wish)
        for (job, number), outcome in zip(batch, outcomes, strict=True):
            job.settle(number, outcome)
        self._on_batch(
            Batched(
                lines=len(lines),
                characters=sum(map(len, lines)),
                pieces=sum(outcome.pieces for outcome in outcomes if isinstance(outcome, Translation)),
                seconds=perf_counter() - begun,
            )
        )

    def _attempt(self, lines: list[str], wish: Wish) -> Sequence[Translation | Exception]:
        """Translations; where a batch fails, each line is tried alone, so that one request cannot spoil another."""
        try:
            return self._translator.translate(lines, wish)
        except Exception as error:  # noqa: BLE001  (told to those who asked; the server goes on)
            if len(lines) == 1:
                return [error]
        return [outcome for line in lines for outcome in self._attempt([line], wish)]
