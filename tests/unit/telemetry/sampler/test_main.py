import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tandem.runlog.event import Event, HostDescribed, HostSampled
from tandem.runlog.reader import read_records
from tandem.telemetry.sampler import __main__ as program
from tandem.telemetry.sampler.host import Host


class Kept:
    """A run log in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def log(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        """Nothing is open."""


class HandClock:
    """Time that passes when somebody waits, or when a sample takes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, end_s: float) -> None:
        self.now_s, self._end_s = 0.0, end_s
        self.waits: list[float] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)

    def is_over(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now_s = min(self.now_s + seconds, self._end_s)
        return self.now_s >= self._end_s


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path, gpus=[])


def test_a_host_is_described_and_then_sampled_on_a_steady_grid_and_at_the_end(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, clock = Kept(), HandClock(monkeypatch, end_s=3.5)
    program.keep_sampling(host, log, every_s=1.0, is_over=clock.is_over)
    assert [type(event) for event in log.events] == [HostDescribed] + [HostSampled] * 4
    seconds = [event.seconds for event in log.events if isinstance(event, HostSampled)]
    assert seconds[1:] == [1.0, 1.0, 0.5]


def test_an_end_right_after_a_sample_makes_no_other(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock = Kept(), HandClock(monkeypatch, end_s=1.05)
    program.keep_sampling(host, log, every_s=1.0, is_over=clock.is_over)
    assert len(log.events) == 2


def test_a_late_sample_does_not_shift_the_grid(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock = Kept(), HandClock(monkeypatch, end_s=6.5)
    sample, late = Host.sample, [0.25, 2.5]

    def slow(self: Host) -> HostSampled:
        clock.now_s += late.pop() if late else 0.0
        return sample(self)

    monkeypatch.setattr(Host, "sample", slow)
    program.keep_sampling(host, log, every_s=1.0, is_over=clock.is_over)
    # The first ends at 3.5, the second, due at 4, at 4.25.
    assert clock.waits[:4] == [1.0, 0.5, 0.75, 1.0]


def test_a_sample_that_fails_is_left_out_and_the_next_one_is_taken(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, clock = Kept(), HandClock(monkeypatch, end_s=3.0)
    sample, failures = Host.sample, [OSError("planted")]

    def failing(self: Host) -> HostSampled:
        if failures:
            raise failures.pop()
        return sample(self)

    monkeypatch.setattr(Host, "sample", failing)
    program.keep_sampling(host, log, every_s=1.0, is_over=clock.is_over)
    assert [type(event) for event in log.events] == [HostDescribed, HostSampled, HostSampled]


def test_the_program_goes_on_in_the_same_file_and_loads_no_torch(tmp_path: Path) -> None:
    code = (
        "import runpy, sys; runpy.run_module('tandem.telemetry.sampler', run_name='__main__'); "
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    for _ in range(2):
        words: list[Any] = [sys.executable, "-c", code, tmp_path, "alpha", "--every=0.1"]
        subprocess.run(words, input=b"", check=True, timeout=60)
    records = list(read_records(tmp_path))
    assert [record.sequence for record in records] == list(range(len(records)))
    assert [record.host for record in records] == ["alpha"] * len(records)
    assert sum(isinstance(record.event, HostDescribed) for record in records) == 2
    assert (tmp_path / "log" / "samples-alpha.jsonl").is_file()
