"""A job done by all cores: results in order, bounded memory, no worker left behind."""

import multiprocessing
import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import forkserver, resource_tracker
from typing import Any, TypeVar

from tandem.errors import TandemError
from tandem.process import SafeChildren

__all__ = ["cores", "running_jobs"]

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 1
"""Tasks handed out beyond the number of workers, so that none waits for the reader; each is held in memory."""

PRELOADED = ["tandem.data.encode"]

_build_job: Callable[[], Callable[[Any], Any]] | None = None


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def running_jobs(
    build_job: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task], *, workers: int
) -> Iterator[Iterator[Result]]:
    """Inside the block, `job(task)` for each task, in order. Each worker process builds its own job once.

    One worker means this process itself. `build_job` must be importable by name, or a partial of such a thing.
    """
    if workers == 1:
        yield map(build_job(), tasks)
        return
    # Forked from a server that has loaded the data side and nothing else: a fork of this process would inherit threads,
    # locks and perhaps a GPU, and spawned workers would each import, and hold in memory, what they can share.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    _start_server()
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(build_job, os.getpid())
    )
    try:
        yield _in_order(pool, tasks, limit=workers + AHEAD)
    except BrokenProcessPool as error:
        raise TandemError(
            "A worker process was killed, most likely for want of memory: run the same command again with fewer "
            "--workers; finished parts are kept."
        ) from error
    except BaseException:
        # An interrupt may have struck in the middle of a hand-over: workers must not be waited for.
        for worker in set(multiprocessing.active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_server() -> None:
    """Start the server deaf to Ctrl-C, which a terminal sends to every process: this one alone deals with it."""
    # The tracker first: starting it lifts the mask. A blocked signal waits; an ignored one would be lost.
    with SafeChildren():
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _deferring_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends: a worker that is half started could not be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(held[0])


def _in_order(pool: ProcessPoolExecutor, tasks: Iterable[Any], *, limit: int) -> Iterator[Any]:
    pending: deque[Future[Any]] = deque()
    for task in tasks:
        with _deferring_interrupts():
            pending.append(pool.submit(_run, task))
        if len(pending) >= limit:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _start(build_job: Callable[[], Callable[[Any], Any]], parent: int) -> None:
    global _build_job  # noqa: PLW0603  (a worker process has one job for its whole life)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _build_job = build_job


def _end_with(parent: int) -> None:
    """End this process when the program that started it is gone, however it went."""
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(parent)], [], [])
    os._exit(1)


@cache
def _job() -> Callable[[Any], Any]:
    # Built with the first task, so that an error in building reaches the caller like any other.
    assert _build_job is not None
    return _build_job()


def _run(task: Any) -> Any:
    return _job()(task)
