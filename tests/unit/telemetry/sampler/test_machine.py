import os

import psutil
import pytest

from tandem.telemetry.sampler.machine import Machine


def test_the_cores_that_this_process_may_use_are_those_that_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3})
    monkeypatch.setattr(psutil, "cpu_percent", lambda **_: [100.0, 50.0, 100.0, 0.0])
    machine = Machine()
    assert machine.describe()["cores"] == 2
    assert machine.sample()["cpu"] == 0.25


def test_where_a_core_is_switched_off_all_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2})
    monkeypatch.setattr(psutil, "cpu_percent", lambda **_: [100.0, 50.0])
    assert Machine().sample()["cpu"] == 0.75


def test_memory_in_use_is_less_than_all_of_it() -> None:
    machine = Machine()
    assert 0 < machine.sample()["memory_bytes"] < machine.describe()["memory_bytes"]
