"""Preparation killed at any moment and run again gives the same bytes as one that was never killed."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.data.corpus.builtin import builtin_pairs

KILLS = 10

# Small parts, so that a kill finds many of them in the making.
PROGRAM = """
import sys
from pathlib import Path
from tandem.config import load_recipe
from tandem.data.corpus import read

if __name__ == "__main__":
    read.CHUNK_LINES = 250
    from tandem.data.prepare import prepare

    prepare(load_recipe(Path(sys.argv[1]), sys.argv[2:]).recipe, workers=2)
"""
RECIPE = """
name: killed
data:
  train:
    - {tsv: train.tsv}
  valid: {tsv: valid.tsv}
subword: {vocabulary: 800, max_pieces: 100}
batch: {target_tokens: 500}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    pairs = [f"{source}\t{target}\n" for source, target in builtin_pairs(seed=1, split="train", count=4_000)]
    (folder / "train.tsv").write_text("".join(pairs + pairs[:500]), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(pairs[-100:]), encoding="utf-8")
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "program.py").write_text(PROGRAM)
    return folder


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "program.py", "recipe.yaml", f"data.folder={name}"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, complaint = process.communicate()
    assert process.returncode == 0, complaint.decode()


def killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    return False


def shards(folder: Path) -> dict[str, bytes]:
    stages = [folder / name for name in ("clean", "subword", "train", "held-out")]
    paths = [path for stage in stages for path in sorted(stage.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_ten_kills_at_random_moments_change_no_byte(folder: Path) -> None:
    from time import monotonic

    begun = monotonic()
    finish(start(folder, "whole"))
    duration_s = monotonic() - begun
    whole = shards(folder / "whole")
    assert len([name for name in whole if name.endswith(".bin")]) > 10
    moments = random.Random(20)
    kills = 0
    for number in range(KILLS):
        name = f"killed-{number}"
        kills += killed_after(start(folder, name), moments.uniform(0.2, 0.95) * duration_s)
        finish(start(folder, name))
        assert shards(folder / name) == whole
        assert not list((folder / name).rglob("*.partial"))
    assert kills >= KILLS // 2
