import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tandem.runlog.event import HostSampled
from tandem.runlog.reader import read_records
from tandem.telemetry.sampler.child import sampling

DEADLINE_S = 60
PARENT = """
import sys, time
from pathlib import Path
from tandem.telemetry.sampler.child import sampling
with sampling(Path(sys.argv[1]), every_s=0.1, gpus=[]):
    time.sleep(600)
"""


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < end_s, f"waited in vain for {what}"
        time.sleep(0.02)


def samples(run: Path) -> int:
    if not list(run.glob("log/*.jsonl")):
        return 0
    return sum(isinstance(record.event, HostSampled) for record in read_records(run))


def samplers(parent: int | None = None) -> list[psutil.Process]:
    held = psutil.Process(parent).children()
    return [each for each in held if "tandem.telemetry.sampler" in each.cmdline()]


def test_inside_the_block_the_host_is_sampled_and_signals_change_nothing(tmp_path: Path) -> None:
    with sampling(tmp_path, every_s=0.1, gpus=[]):
        (process,) = samplers()
        wait_for(lambda: samples(tmp_path) > 0, "the first sample")
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        before = samples(tmp_path)
        wait_for(lambda: samples(tmp_path) > before, "another sample")
        assert process.nice() > 0
    assert not process.is_running()
    assert (tmp_path / "log" / f"samples-{platform.node()}.jsonl").is_file()


def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)]) as parent:
        try:
            wait_for(lambda: samples(tmp_path) > 0, "the first sample")
            (process,) = samplers(parent.pid)
        finally:
            parent.kill()
    wait_for(lambda: not process.is_running(), "the end of the sampler")


def test_a_sampler_that_cannot_be_started_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with sampling(tmp_path, every_s=1.0, gpus=[]):
        assert not samplers()


def test_no_place_for_samples_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the folder should be")
    with sampling(tmp_path, every_s=0.1, gpus=[]):
        (process,) = samplers()
    assert not process.is_running()
