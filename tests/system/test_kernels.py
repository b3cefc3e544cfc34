"""The measurement of kernels runs on a CPU too, where Triton interprets them."""

import json
import subprocess
import sys
from pathlib import Path


def test_kernels_are_measured_beside_others(repository: Path, tmp_path: Path) -> None:
    script = repository / "benchmarks" / "kernels.py"
    options = ["--device", "cpu", "--places", "32", "--vocabulary", "64", "--parts", "loss", "products"]
    options += ["--out", str(tmp_path)]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    result = json.loads(path.read_text())
    assert result["errors"] == {}
    assert set(result["copy_bytes_per_s"]) == {"loss", "products"}
    rows = {(row["kernel"], row["side"], row["way"]): row for row in result["rows"]}
    ours = rows["cross-entropy of logits", "tandem", "both"]
    assert ours["share_of_floor"] > 0
    assert ours["how"] == "cpu"
    assert rows["projection and loss", "eager, fp32 logits", "both"]["difference"] < 0.02
    assert rows["feed-forward in", "torch.mm", "weight gradient, fp32 sum"]["tflops_per_s"] > 0
    assert "cross-entropy of logits" in done.stdout
