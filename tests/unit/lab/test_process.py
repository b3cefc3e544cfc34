import os
import subprocess
from dataclasses import replace

import pytest

from tandem.lab.process import end, identify, is_alive, processes_in, read_boot


def test_a_process_is_known_by_number_and_start() -> None:
    assert identify(os.getpid()) == identify(os.getpid())
    assert is_alive(identify(os.getpid()))
    assert not is_alive(replace(identify(os.getpid()), ticks=0))


def test_a_process_that_ended_is_not_alive_even_before_anybody_asked_how() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        started = identify(child.pid)
        end(started)
        assert not is_alive(started)
        with pytest.raises(ProcessLookupError):
            identify(child.pid)
        end(started)
        assert child.wait(timeout=60) == -9


def test_another_process_with_the_same_number_is_not_killed() -> None:
    with subprocess.Popen(["sleep", "1000"]) as child:
        end(replace(identify(child.pid), ticks=1))
        assert child.poll() is None
        child.kill()


def test_a_namespace_that_is_not_there_has_no_processes() -> None:
    assert processes_in("tandem-that-is-not-there") == []


def test_the_machine_tells_one_start_from_another() -> None:
    assert read_boot() == read_boot() != ""
