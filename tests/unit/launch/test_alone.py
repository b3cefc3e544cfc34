import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from tandem.errors import TandemError
from tandem.launch.alone import unsupervised
with unsupervised(Path(sys.argv[1])):
    exec(sys.argv[2])
print("well")
"""


def run(output: Path, block: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", PROGRAM, str(output), block]
    environment = {**os.environ, "RANK": "2"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_a_rank_that_ends_well_says_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "pass")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "well\n", "")


def test_a_sentence_names_rank_and_host(tmp_path: Path) -> None:
    ended = run(tmp_path, "raise TandemError('No space on /x: make some.')")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"error: rank 2 on {os.uname().nodename}: No space on /x: make some.\n"


def test_anything_else_is_one_sentence_and_its_traceback_is_kept(tmp_path: Path) -> None:
    ended = run(tmp_path / "log", "raise RuntimeError('[/a/pair.cc:553] Connection closed. GLHF')")
    kept = tmp_path / "log" / "rank-00002.txt"
    assert ended.returncode == 1
    assert ended.stderr.endswith(f"RuntimeError (Connection closed): what led to it is in {kept} there.\n")
    assert len(ended.stderr.splitlines()) == 1
    assert "Traceback" in kept.read_text()


def test_a_traceback_goes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log/rank-00002.txt").symlink_to(tmp_path / "precious")
    ended = run(tmp_path / "log", "raise RuntimeError('oh')")
    assert ended.returncode == 1
    assert "what led to it could not be kept" in ended.stderr
    assert (tmp_path / "precious").read_text() == "mine"
