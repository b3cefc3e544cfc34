import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tandem.data.workers import running_jobs
from tandem.errors import TandemError

Job = Callable[[int], tuple[int, int]]


def run_all(build_job: Callable[[], Callable[[int], Any]], count: int, *, workers: int) -> list[Any]:
    with running_jobs(build_job, range(count), workers=workers) as results:
        return list(results)


def build_square(power: int) -> Job:
    pid = os.getpid()
    return lambda number: (number**power, pid)


def build_waiting() -> Callable[[int], int]:
    def work(number: int) -> int:
        if number:
            signal.pause()
        return number

    return work


def build_killer() -> Callable[[int], None]:
    return lambda _: os.kill(os.getpid(), signal.SIGKILL)


def build_failing() -> Callable[[int], int]:
    def fail(number: int) -> int:
        if number == 3:
            raise TandemError("Number three is broken: leave it out.")
        return number

    return fail


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers: int) -> None:
    results = run_all(partial(build_square, 2), 20, workers=workers)
    assert [result for result, _ in results] == [number**2 for number in range(20)]
    assert (os.getpid() in {pid for _, pid in results}) is (workers == 1)


def test_tasks_are_taken_only_as_results_are_read() -> None:
    taken = []

    def tasks() -> Iterator[int]:
        for number in range(1_000_000):
            taken.append(number)
            yield number

    with running_jobs(partial(build_square, 2), tasks(), workers=2) as results:
        for _ in range(5):
            next(results)
    assert len(taken) < 20


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_is_the_callers_error(workers: int) -> None:
    with pytest.raises(TandemError, match="Number three is broken"):
        run_all(build_failing, 5, workers=workers)


def test_an_error_in_building_the_job_is_the_callers_error_too() -> None:
    with pytest.raises(ZeroDivisionError):
        run_all(partial(divmod, 1, 0), 3, workers=2)


def test_a_killed_worker_is_one_sentence() -> None:
    with pytest.raises(TandemError, match="worker process was killed.*fewer --workers"):
        run_all(build_killer, 3, workers=2)


def test_an_interrupted_block_leaves_no_worker_and_does_not_wait() -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        running_jobs(build_waiting, range(4), workers=2) as results,
    ):
        assert next(results) == 0
        signal.raise_signal(signal.SIGINT)
    assert not [child for child in multiprocessing.active_children() if child.is_alive()]


def test_workers_die_with_a_killed_parent(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from tandem.data.workers import running_jobs\n"
        "def job(number):\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    while True: os.read(0, 1)\n"
        "def build(): return job\n"
        "if __name__ == '__main__':\n"
        "    with running_jobs(build, range(2), workers=2) as results: list(results)\n"
    )
    with subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.kill()
        # The pipe ends when the last process that holds it is gone.
        assert parent.stdout.read() == b""
    assert len(workers) == 2
