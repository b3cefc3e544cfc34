"""Workers killed at random moments, inside a checkpoint write too, change no bit of what is learnt."""

from pathlib import Path

import pytest
from benchmarks.killing import KINDS, kill_while_training, train_alone, weights, write_recipe

pytestmark = pytest.mark.xdist_group("train")


def test_three_kills_change_no_bit(tmp_path: Path) -> None:
    write_recipe(tmp_path, steps=90)
    how = ["--device", "cpu", "--workers", "2"]
    train_alone(tmp_path, "alone", how)
    kills = kill_while_training(tmp_path, "killed", how, kills=3, seed=1)
    assert [kill.kind for kill in kills] == list(KINDS)
    assert [kill.left_half_written for kill in kills if kill.kind == "save"] == [True]
    assert weights(tmp_path, "killed") == weights(tmp_path, "alone")
    assert not list((tmp_path / "killed" / "checkpoints").glob("*.partial"))
