"""What training needs is never written over."""

from pathlib import Path

import pytest

from tandem.checkpoint.layout import OPTIMIZER, STATE
from tandem.checkpoint.target import refuse_target
from tandem.errors import TandemError


@pytest.mark.parametrize("name", [STATE, OPTIMIZER])
def test_a_folder_that_training_can_go_on_from_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / name).touch()
    with pytest.raises(TandemError, match=f"it has {name}.*name another folder"):
        refuse_target(tmp_path / "copied")


@pytest.mark.parametrize("made", ["log", "checkpoints/step-00000010"])
@pytest.mark.parametrize("target", ["checkpoints/mean", "checkpoints/step-00000010", "checkpoints/more/mean"])
def test_the_checkpoints_of_a_run_are_left_alone(made: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "run" / made).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for run in ("run", "link"):
        with pytest.raises(TandemError, match="lies among the checkpoints of a run"):
            refuse_target(tmp_path / run / target)


@pytest.mark.parametrize("made", ["log/rank-00000.jsonl", "checkpoints/step-00000010/model.safetensors"])
def test_a_run_is_called_one(made: str, tmp_path: Path) -> None:
    (tmp_path / "run" / made).parent.mkdir(parents=True)
    (tmp_path / "run" / made).touch()
    with pytest.raises(TandemError, match="run is a run, .*: name another folder to write to"):
        refuse_target(tmp_path / "run")


def test_other_places_are_free(tmp_path: Path) -> None:
    (tmp_path / "run/log").mkdir(parents=True)
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/model.safetensors").touch()
    for target in ("new", "bundle", "run/mean", "elsewhere/checkpoints/mean"):
        refuse_target(tmp_path / target)
