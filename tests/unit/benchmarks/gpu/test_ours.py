"""What a run log says of speed is read right."""

from pathlib import Path

import pytest
from benchmarks.gpu.ours import read_checkpoints, read_run
from tests.unit.benchmarks.gpu.story import started, step, write_log

from tandem.runlog.event import CheckpointWritten


def saved(number: int) -> CheckpointWritten:
    return CheckpointWritten(step=number, folder="", bytes=11, blocked_s=0.5, write_s=3.0, files={})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    happened = [
        (10.0, started()),
        (19.0, step(1, tokens=100, seconds=9.0)),
        (20.0, step(2, tokens=100, seconds=1.0)),
        (21.0, step(3, tokens=120, seconds=1.0)),
        (23.5, saved(3)),
        (24.0, step(4, tokens=80, seconds=2.0)),
        (25.0, step(5, tokens=130, seconds=1.0)),
        (29.0, saved(5)),
    ]
    return write_log(tmp_path, happened)


def test_the_median_is_of_the_steps_after_warm_up(run: Path) -> None:
    found = read_run(run, warmup=1)
    assert found["target_tokens_per_s"] == pytest.approx((100 + 120) / 2)
    assert (found["steps"], found["target_tokens_per_update"]) == (4, 107.5)
    assert found["phases_ms"] == {"data": 312.5, "forward": 937.5}


def test_the_full_speed_is_by_the_wall_with_everything_between_the_steps(run: Path) -> None:
    assert read_run(run, warmup=1)["full_target_tokens_per_s"] == pytest.approx((120 + 80 + 130) / 5.0)


def test_the_first_step_says_how_long_start_up_took(run: Path) -> None:
    assert read_run(run, warmup=1)["first_step_s"] == 9.0


def test_the_last_checkpoint_comes_after_the_steps_that_count(run: Path) -> None:
    assert read_checkpoints(run, warmup=1) == {
        "checkpoints": 1,
        "blocked_s": [0.5],
        "write_s": [3.0],
        "bytes": 11,
    }
