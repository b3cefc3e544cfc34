"""Preparation killed at any moment and run again gives the same bytes as one that was never killed."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.data.corpus.builtin import builtin_pairs

KILLS = 10

# Small parts, so that a kill finds many of them in the making. The moment of a kill is the number of a thing done
# with a file, since seconds differ from one run to the next: the process counts these and kills itself there.
PROGRAM = """
import os
import signal
import sys
from pathlib import Path
from tandem.config import load_recipe
from tandem.data.corpus import read

TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir", "os.truncate"}

if __name__ == "__main__":
    read.CHUNK_LINES = 250
    from tandem.data.prepare import prepare

    recipe = load_recipe(Path(sys.argv[1]), [f"data.folder={sys.argv[2]}"]).recipe
    moment, touched, process = int(sys.argv[3]), 0, os.getpid()

    def count(event, arguments):
        global touched
        if event in TOUCHES and os.getpid() == process:
            touched += 1
            if touched == moment:
                os.kill(process, signal.SIGKILL)

    sys.addaudithook(count)
    prepare(recipe, workers=2)
    print(touched)
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


def prepared(folder: Path, name: str) -> int:
    """Prepares to the end; how many things were done with files on the way."""
    done = run(folder, name, moment=0)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def run(folder: Path, name: str, *, moment: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "program.py", "recipe.yaml", name, str(moment)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def shards(folder: Path) -> dict[str, bytes]:
    stages = [folder / name for name in ("clean", "subword", "train", "held-out")]
    paths = [path for stage in stages for path in sorted(stage.rglob("*")) if path.is_file()]
    # The file of a lock stays where its holder was killed between its work and letting go; it locks nothing then.
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.suffix != ".lock"}


def test_ten_kills_at_random_moments_change_no_byte(folder: Path) -> None:
    touched = prepared(folder, "whole")
    whole = shards(folder / "whole")
    assert len([name for name in whole if name.endswith(".bin")]) > 10
    moments = random.Random(20)
    for number in range(KILLS):
        name = f"killed-{number}"
        killed = run(folder, name, moment=moments.randrange(1, touched * 9 // 10))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        prepared(folder, name)
        assert shards(folder / name) == whole
        assert not list((folder / name).rglob("*.partial"))
