"""Preparation killed at any moment and run again gives the same bytes as one that was never killed."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.data.corpus.builtin import builtin_pairs

KILLS = 10
NEVER = 0
ENDED_WELL = ("ended", 0)

# Small parts, so that a kill finds many of them in the making. The moment of a kill is the number of a thing done
# with a file, since seconds differ from one run to the next: the process counts these and kills itself there.
# Each preparation is a process of its own, forked from one that has imported everything and done nothing yet.
PROGRAM = """
import os
import signal
import sys
from pathlib import Path
from tandem.config import load_recipe
from tandem.data.corpus import read

TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir", "os.truncate"}

def attempt(folder, moment):
    recipe = load_recipe(Path("recipe.yaml"), [f"data.folder={folder}"]).recipe
    touched, process = 0, os.getpid()

    def count(event, arguments):
        nonlocal touched
        if event in TOUCHES and os.getpid() == process:
            touched += 1
            if touched == moment:
                os.kill(process, signal.SIGKILL)

    sys.addaudithook(count)
    prepare(recipe, workers=2)
    return touched

if __name__ == "__main__":
    read.CHUNK_LINES = 100
    from tandem.data.prepare import prepare

    for folder, moment in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
        child = os.fork()
        if not child:
            print("touched", attempt(folder, moment))
            sys.exit()
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
RECIPE = """
name: killed
data:
  train:
    - {tsv: train.tsv}
  valid: {tsv: valid.tsv}
subword: {vocabulary: 400, max_pieces: 100}
batch: {target_tokens: 500}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    pairs = [f"{source}\t{target}\n" for source, target in builtin_pairs(seed=1, split="train", count=1_600)]
    (folder / "train.tsv").write_text("".join(pairs + pairs[:200]), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(pairs[-100:]), encoding="utf-8")
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "program.py").write_text(PROGRAM)
    return folder


def run(folder: Path, *attempts: tuple[str, int]) -> list[tuple[str, int]]:
    """Prepare into folders, one after the other, each until it is killed; what they said and how they ended."""
    words = [str(word) for attempt in attempts for word in attempt]
    command = [sys.executable, "program.py", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stdout.splitlines()]
    return [(what, int(number)) for what, number in said]


def shards(folder: Path) -> dict[str, bytes]:
    stages = [folder / name for name in ("clean", "subword", "train", "held-out")]
    paths = [path for stage in stages for path in sorted(stage.rglob("*")) if path.is_file()]
    # The file of a lock stays where its holder was killed between its work and letting go; it locks nothing then.
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.suffix != ".lock"}


def test_ten_kills_at_random_moments_change_no_byte(folder: Path) -> None:
    (_, touched), end = run(folder, ("whole", NEVER))
    assert end == ENDED_WELL
    whole = shards(folder / "whole")
    assert len([name for name in whole if name.endswith(".bin")]) > 10
    moments = random.Random(20)
    names = [f"killed-{number}" for number in range(KILLS)]
    attempts = [
        (name, moment) for name in names for moment in (moments.randrange(1, touched * 9 // 10), NEVER)
    ]
    ends = [said for said in run(folder, *attempts) if said[0] == "ended"]
    assert ends == [("ended", -signal.SIGKILL), ENDED_WELL] * KILLS
    for name in names:
        assert shards(folder / name) == whole
        assert not list((folder / name).rglob("*.partial"))
