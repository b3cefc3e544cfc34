"""Training under mpirun over two hosts, each with a disk of its own."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tandem.lab import Lab
from tandem.runlog.event import StepFinished, TrainingFinished
from tandem.runlog.reader import read_records

pytestmark = pytest.mark.xdist_group("lab")
STEPS = 12
RECIPE = f"""
name: micro
data:
  train:
    - builtin: {{pairs: 1500}}
  valid:
    builtin: {{pairs: 50, split: valid}}
subword: {{vocabulary: 704, max_pieces: 64}}
batch: {{target_tokens: 512}}
model: {{preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}}
optim: {{warmup_steps: 10}}
train: {{max_steps: {STEPS}}}
evaluate: {{every_steps: {STEPS}, sentences: 8, probe_pairs: 50, beam: 1}}
"""
# Each host works in its own home.
AT_HOME = ["sh", "-c", 'cd "$HOME" && exec "$@"', "sh"]


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    if not shutil.which("mpirun"):
        pytest.skip("needs mpirun (Debian: openmpi-bin)")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "lab", hosts=3) as lab:
        for host in ("h1", "h2"):
            (lab.home(host) / "micro.yaml").write_text(RECIPE)
        yield lab


def mpirun(
    lab: Lab, head: str, *words: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Train on both hosts, two ranks on h1 and one on h2, with mpirun started in a host."""
    where = f"{lab.address('h1')}:2,{lab.address('h2')}:1"
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "-H", where]
    train = [*AT_HOME, sys.executable, "-m", "tandem", "train", "micro.yaml", "--device", "cpu"]
    return lab.exec(head, [*launcher, *train], capture_output=True, timeout=180)


def test_mpirun_trains_on_two_hosts_without_naming_an_interface(lab: Lab) -> None:
    result = mpirun(lab, "h1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == "Training in runs/micro; look at it with tandem watch runs/micro.\n"
    assert "error" not in result.stderr
    runs = {host: lab.home(host) / "runs" / "micro" for host in ("h1", "h2")}
    logs = {host: sorted(path.name for path in run.glob("log/rank-*.jsonl")) for host, run in runs.items()}
    assert logs == {"h1": ["rank-00000.jsonl", "rank-00001.jsonl"], "h2": ["rank-00002.jsonl"]}
    events = [record.event for record in read_records(runs["h1"])]
    assert [event.step for event in events if isinstance(event, TrainingFinished)] == [STEPS]
    assert max(event.step for event in events if isinstance(event, StepFinished)) == STEPS
    assert (runs["h1"] / "checkpoints" / f"step-{STEPS:08d}").is_dir()
    assert (lab.home("h2") / "prepared" / "micro").is_dir()


def test_mpirun_on_a_host_that_does_not_train_gets_one_sentence_with_the_cure(lab: Lab) -> None:
    result = mpirun(lab, "h3")
    assert result.returncode == 1
    assert f"Rank 0 is on h1, which does not have the address {lab.address('h3')}" in result.stderr
    assert "mpirun -x MASTER_ADDR=" in result.stderr
    assert "Traceback" not in result.stderr
