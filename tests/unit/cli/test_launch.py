import shlex
from pathlib import Path

import pytest

from tandem.cli.launch import k8s, slurm
from tandem.errors import TandemError

RECIPE = Path(__file__).parents[3] / "recipes" / "demo.yaml"


def test_a_dry_run_prints_the_script_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    slurm(RECIPE, ["train.max_steps=900"], nodes=2, gpus_per_node=4, python="/opt/python", dry_run=True)
    script = capsys.readouterr().out
    assert "#SBATCH --ntasks-per-node=4\n" in script
    words = shlex.split(next(line for line in script.splitlines() if "srun" in line and " train " in line))
    told = [
        "/opt/python",
        "-P",
        "-m",
        "tandem",
        "train",
        str(RECIPE.resolve()),
        "train.max_steps=900",
        "--run",
    ]
    assert words[2:10] == told
    assert words[10] == str(tmp_path / "runs" / "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_that_does_not_load_is_told_before_it_waits_in_a_queue(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="train.max_stepz"):
        slurm(RECIPE, ["train.max_stepz=5"], run=tmp_path / "run", dry_run=True)


def test_a_manifest_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    k8s(RECIPE, image="tandem:1", claim="disk")
    printed = capsys.readouterr().out
    assert "kind: TrainJob" in printed
    k8s(RECIPE, image="tandem:1", claim="disk", out=tmp_path / "job.yaml")
    assert (tmp_path / "job.yaml").read_text() == printed
    assert "kubectl apply -f" in capsys.readouterr().out
