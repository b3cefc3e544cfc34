"""Workers killed at random moments, inside a checkpoint write too, change no bit of what is learnt."""

import pytest
from benchmarks.killing import KINDS, kill_while_training
from tests.system.work import Folder

pytestmark = pytest.mark.xdist_group("train")


def test_three_kills_change_no_bit(folder: Folder, undisturbed: list[bytes]) -> None:
    how = ["--device", "cpu", "--workers", "2", "checkpoint.every_steps=5", "checkpoint.keep_last=3"]
    kills = kill_while_training(folder.path, "killed", how, kills=3, seed=1)
    assert [kill.kind for kill in kills] == list(KINDS)
    assert [kill.left_half_written for kill in kills if kill.kind == "save"] == [True]
    assert folder.bits("killed") == undisturbed
    assert not list((folder.path / "killed" / "checkpoints").glob("*.partial"))
