"""A real log of another tool, by other people, imported through the command line."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.observe.series.fold import read_series
from tandem.runlog.event import RunImported, TrainingStarted
from tandem.runlog.reader import read_records


@pytest.fixture(scope="module")
def run(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = real_data / "openseq2seq-logs" / "two-hosts-four-v100.log.xz"
    if not log.is_file():
        pytest.skip("a real log of OpenSeq2Seq is not beside the checkout")
    folder = tmp_path_factory.mktemp("imported") / "reference"
    words = [
        str(Path(sys.executable).with_name("tandem")),
        "import",
        "openseq2seq",
        str(log),
        "--run",
        str(folder),
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert "190 records of steps 0 to 18,900, 5 evaluations" in done.stdout
    return folder


def test_the_log_says_what_the_run_was(run: Path) -> None:
    imported = next(record.event for record in read_records(run) if isinstance(record.event, RunImported))
    known = ("gpus", "hosts", "pairs_per_gpu", "precision", "reported_parameters", "vocabulary", "eval_steps")
    assert [imported.facts[name] for name in known] == [4, 2, 256, "mixed", 60_880_896, 32_768, 4001]
    assert imported.facts["save_checkpoint_steps"] == 299_998
    assert imported.facts["gradient_bytes_per_step_per_link"] == 365_285_376
    assert imported.times == "steps"
    start = next(record.event for record in read_records(run) if isinstance(record.event, TrainingStarted))
    assert start.schedule == "transformer: 2 · 512^-0.5 · min(step^-0.5, step · 8000^-1.5)"
    assert start.max_steps == 300_000


def test_its_curves_are_there_and_its_clock_adds_up(run: Path) -> None:
    series = read_series(run)
    durations = [value for value in series.steps.duration_s if not math.isnan(value)]
    assert len(durations) == 185
    assert sum(durations) / len(durations) == pytest.approx(1.686, abs=0.002)
    assert [evaluation.step for evaluation in series.evaluations] == [0, 4001, 8002, 12_003, 16_004]
    assert [evaluation.valid_loss for evaluation in series.evaluations] == [
        9.4593,
        2.4003,
        2.0124,
        1.8661,
        1.7754,
    ]
    assert series.evaluations[0].scores == {"Eval_BLEU_Score": 0.9565}
    # An evaluation of 3,000 sentences takes as long each time: what the steps around it cannot explain.
    assert all(18 < evaluation.duration_s < 23 for evaluation in series.evaluations[1:])
    assert series.end_s == pytest.approx(8.896 * 3600, rel=0.001)
    assert not series.is_closed
    assert not series.checkpoints
