"""The codec's benchmark runs, and its sides do the same work."""

import json
import subprocess
import sys
from pathlib import Path


def test_each_side_is_timed_and_what_is_lost_is_said(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[3] / "benchmarks" / "codec.py"
    options = ["--numbers", "64000", "--repetitions", "1", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    result = json.loads(path.read_text())
    assert result["numbers"] == 64_000
    assert 0.005 < result["lost"] < 0.0095
    assert {(row["work"], row["side"]) for row in result["rows"]} == {
        ("encode", "copy"),
        *(
            (work, side)
            for work in ("encode", "encode with residual", "decode", "decode and add")
            for side in ("tandem", "plain")
        ),
    }
