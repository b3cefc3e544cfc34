"""A thread that does one task after another, so that exchanging goes on beside computing."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

import torch

__all__ = ["Lane"]

_Result = TypeVar("_Result")
_Task = Callable[[], None]


class Lane:
    """Does tasks in the order in which they are given.

    Not a pool of concurrent.futures: that waits for its threads at the end of the process, and a thread whose peer
    rank is gone may wait for minutes.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self._device = device
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"tandem-{name}", daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], _Result]) -> Future[_Result]:
        """Have the task done; its result, or its error, is in the future."""
        future: Future[_Result] = Future()
        self._tasks.put(lambda: _fulfil(future, task))
        return future

    def close(self) -> None:
        """Let the thread end after the tasks that it has."""
        self._tasks.put(None)

    @torch.no_grad()
    def _run(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        while (task := self._tasks.get()) is not None:
            task()
            # What it holds must not live until the next one comes.
            del task


def _fulfil(future: Future[_Result], task: Callable[[], _Result]) -> None:
    try:
        future.set_result(task())
    except BaseException as error:  # noqa: BLE001  (it is raised where the result is asked for)
        future.set_exception(error)
