"""Which checkpoints stay."""

from datetime import UTC, datetime
from pathlib import Path

from tandem.checkpoint.listing import CheckpointInfo, Scores
from tandem.checkpoint.retention import superfluous


def info(
    step: int, loss: float | None = None, bleu: float | None = None, *, damage: str | None = None
) -> CheckpointInfo:
    return CheckpointInfo(
        folder=Path(f"step-{step:08d}"),
        step=step,
        scores=Scores(loss=loss, bleu=bleu),
        files={},
        written=datetime(2024, 1, 1, tzinfo=UTC),
        damage=damage,
    )


def kept(infos: list[CheckpointInfo], *, last: int, best: int) -> list[int]:
    gone = superfluous(infos, keep_last=last, keep_best=best)
    return [each.step for each in infos if each not in gone]


def test_the_last_ones_stay() -> None:
    assert kept([info(step) for step in range(6)], last=3, best=3) == [3, 4, 5]


def test_the_best_by_loss_and_the_best_by_bleu_stay_beside_the_last() -> None:
    infos = [info(0, 9.0, 30.0), info(1, 1.0, 0.0), info(2, 2.0, 20.0), info(3, 3.0, 10.0), info(4)]
    assert kept(infos, last=1, best=1) == [0, 1, 4]
    assert kept(infos, last=1, best=2) == [0, 1, 2, 4]


def test_of_equal_scores_the_newer_stays() -> None:
    infos = [info(step, 2.0, 5.0) for step in range(5)]
    assert kept(infos, last=1, best=2) == [3, 4]
    assert kept([*infos, info(5, 3.0, 1.0)], last=1, best=1) == [4, 5]


def test_one_that_was_not_judged_is_never_the_best() -> None:
    infos = [info(0), info(1, loss=4.0), info(2), info(3, bleu=0.0), info(4)]
    assert kept(infos, last=1, best=3) == [1, 3, 4]


def test_keeping_no_best_keeps_the_last_only_and_keeping_no_last_keeps_one() -> None:
    infos = [info(step, loss=float(step)) for step in range(3)]
    assert kept(infos, last=2, best=0) == [1, 2]
    assert kept(infos, last=0, best=0) == [2]


def test_a_damaged_one_takes_no_place_and_is_not_removed() -> None:
    infos = [info(0), info(1), info(2, damage="torn"), info(3, damage="torn")]
    assert kept(infos, last=1, best=0) == [1, 2, 3]
    assert superfluous([info(0, damage="torn")], keep_last=1, keep_best=0) == []
