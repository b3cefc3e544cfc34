"""The measurement of training on a GPU runs on a CPU too, through the real commands and on real shards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("train")


def test_a_run_and_its_bare_step_are_measured(repository: Path, tmp_path: Path) -> None:
    where = ["--home", str(tmp_path / "home"), "--out", str(tmp_path / "out")]
    size = ["--presets", "tiny", "--tokens", "128", "--pairs", "300", "--vocabulary", "200", "--steps", "6"]
    size += ["--set", "model.width=32", "model.heads=2", "model.feed_forward=64"]
    parts = ["--device", "cpu", "--parts", "run", "bare"]
    script = repository / "benchmarks" / "train_gpu.py"
    done = subprocess.run(
        [sys.executable, script, *parts, *size, *where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out").iterdir()
    result = json.loads(path.read_text())
    run, bare = result["cases"]
    assert (run["side"], bare["side"]) == ("tandem train", "tandem, bare step")
    assert run["full_target_tokens_per_s"] > 0
    assert bare["target_tokens_per_s"] > 0
    assert run["checkpoints"] == 1
    assert bare["anatomy"]["by_class_ms"]["matrix products"] > 0
    assert set(result["lost"]) == {"tiny"}
    assert "matrix products" in done.stdout
