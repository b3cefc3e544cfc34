"""Curves are smoothed before they are compared, and the script trains what it says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.loss_curves import apart, smoothed

RECIPE = """
name: micro
data:
  train:
    - builtin: {pairs: 600}
  folder: %s
subword: {vocabulary: 512, max_pieces: 64}
batch: {target_tokens: 512}
model: {preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}
telemetry: {report: false}
"""


def test_smoothing_takes_the_mean_of_a_window() -> None:
    assert smoothed([1, 2, 6, 4], window=2) == [1.5, 4, 5]
    assert smoothed([1, 2, 6], window=3) == [3]


def test_curves_are_as_far_apart_as_at_their_worst_step() -> None:
    found = apart([5, 4, 3, 3], [5, 6, 3, 2], window=2)
    assert found == {"largest_difference": 1.0, "at_step": 2, "last_difference": -0.5}


def test_noise_that_evens_out_counts_little() -> None:
    losses = [3.0] * 40
    noisy = [3.0 + (-1) ** step for step in range(40)]
    assert apart(losses, noisy, window=20)["largest_difference"] == pytest.approx(0)


def test_every_kind_is_trained_and_held_against_the_first(repository: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE % (tmp_path / "data"))
    script: list[str | Path] = [sys.executable, repository / "benchmarks" / "loss_curves.py", recipe]
    where: list[str | Path] = ["--device", "cpu", "--home", tmp_path / "runs", "--out", tmp_path / "results"]
    what = ["--steps", "4", "--window", "2", "--precisions", "fp32", "bf16", "--set", "model.dropout=0"]
    done = subprocess.run(
        [*script, *where, *what], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results").iterdir()
    result = json.loads(path.read_text())
    curves = result["curves"]
    assert list(curves) == ["fp32", "bf16", "another seed"]
    assert [curve["precision"] for curve in curves.values()] == ["fp32", "bf16", "fp32"]
    assert {len(curve["losses"]) for curve in curves.values()} == {4}
    differences = {name: distance["largest_difference"] for name, distance in result["apart"].items()}
    assert 0 < differences["bf16"] < 0.1
    assert differences["another seed"] > 0
