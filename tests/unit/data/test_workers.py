import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tandem.data.workers import run_jobs
from tandem.errors import TandemError

Job = Callable[[int], tuple[int, int]]


def build_square(power: int) -> Job:
    pid = os.getpid()
    return lambda number: (number**power, pid)


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
    results = list(run_jobs(partial(build_square, 2), range(20), workers=workers))
    assert [result for result, _ in results] == [number**2 for number in range(20)]
    assert (os.getpid() in {pid for _, pid in results}) is (workers == 1)


def test_tasks_are_taken_only_as_results_are_read() -> None:
    taken = []

    def tasks() -> Iterator[int]:
        for number in range(1_000_000):
            taken.append(number)
            yield number

    results = run_jobs(partial(build_square, 2), tasks(), workers=2)
    for _ in range(5):
        next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_is_the_callers_error(workers: int) -> None:
    with pytest.raises(TandemError, match="Number three is broken"):
        list(run_jobs(build_failing, range(5), workers=workers))


def test_an_error_in_building_the_job_is_the_callers_error_too() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_jobs(partial(divmod, 1, 0), range(3), workers=2))


def test_a_killed_worker_is_one_sentence() -> None:
    with pytest.raises(TandemError, match="worker process was killed.*fewer --workers"):
        list(run_jobs(build_killer, range(3), workers=2))


def test_workers_die_with_a_killed_parent(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from tandem.data.workers import run_jobs\n"
        "def job(number):\n"
        "    os.write(1, b'%d\\n' % os.getpid())\n"
        "    while True: os.read(0, 1)\n"
        "def build(): return job\n"
        "if __name__ == '__main__': list(run_jobs(build, range(2), workers=2))\n"
    )
    with subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.kill()
        # The pipe ends when the last process that holds it is gone.
        assert parent.stdout.read() == b""
    assert len(workers) == 2
