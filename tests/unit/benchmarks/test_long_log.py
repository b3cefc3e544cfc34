"""The simulated long run is a real run log, and tells the story that it was made from."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from benchmarks import report_long
from benchmarks.long_log import LongRun, write_long_log

from tandem.observe.series.columns import Series
from tandem.observe.series.fold import read_series
from tandem.progress import Silent
from tandem.runlog.record import from_line, to_line

STORY = LongRun(steps=600, evaluate_every=100, probe_every=50)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("long")
    write_long_log(run, STORY, workers=2, progress=Silent())
    return run


@pytest.fixture(scope="module")
def series(run: Path) -> Series:
    return read_series(run)


def test_every_line_is_written_as_the_run_log_writes_it(run: Path) -> None:
    for name in ("rank-00000", "rank-00011", "samples-node-b", "host-node-a"):
        lines = (run / "log" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        assert all(to_line(from_line(line)) == line for line in lines)


def test_what_is_read_is_what_was_drawn(series: Series) -> None:
    assert series.steps.step.tolist() == list(range(1, 601))
    assert series.ranks.ranks == 16
    assert (series.damaged, series.redone_steps) == (0, len(STORY.step) - 600)
    assert len(series.starts) == 3
    assert len(series.evaluations) == len(series.checkpoints) == 6
    last = STORY.first_rows[-1]
    drawn = STORY.phases(11)["exchange"][last:]
    np.testing.assert_allclose(series.ranks.phases["exchange"][11, -len(drawn) :], drawn, atol=1e-6)
    assert not np.isnan(series.ranks.duration_s).any()


def test_both_hosts_are_on_one_clock(series: Series) -> None:
    assert series.ranks.hosts == ("node-a",) * 8 + ("node-b",) * 8
    first, second = (series.samples[name].time_s for name in ("node-a", "node-b"))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert len(first) == STORY.seconds - 1


def test_the_command_that_is_measured_reads_the_run(run: Path) -> None:
    command = report_long.build_commands(run)["read"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("600 steps in ")
