import math
from pathlib import Path

import pytest
from tests.unit.observe.imports.board import NAME, write_points

from tandem.errors import TandemError
from tandem.observe.imports.curves import Curves, read_curves


def kinds(folder: Path, tag: str) -> list[str]:
    write_points(folder, [(1.0, 1, {tag: 0.5})])
    return [point.kind for point in read_curves(folder).points]


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        ("train_loss", "train_loss"),
        ("loss", "train_loss"),
        ("Train/Loss", "train_loss"),
        ("eval_loss", "eval_loss"),
        ("valid/loss", "eval_loss"),
        ("val_loss", "eval_loss"),
        ("learning_rate", "learning_rate"),
        ("train/lr", "learning_rate"),
        ("global_gradient_norm", "global_gradient_norm"),
        ("global_step/sec", "steps_per_second"),
        ("Eval_BLEU_Score", "score"),
        ("BLEU", "score"),
        ("phase/exchange", "phase/exchange"),
        ("progress/xent", "train_loss"),
        ("progress/lr", "learning_rate"),
        ("progress/tgtper", "target_tokens_per_second"),
        ("valid/xent", "eval_loss"),
        ("valid/BLEU", "score"),
        ("optim/learning_rate", "learning_rate"),
        ("gradients/global_norm", "global_gradient_norm"),
        ("steps_per_sec", "steps_per_second"),
        ("words_per_sec/target", "target_tokens_per_second"),
    ],
)
def test_a_curve_is_known_by_the_names_that_tools_give_it(tmp_path: Path, tag: str, kind: str) -> None:
    assert kinds(tmp_path, tag) == [kind]


@pytest.mark.parametrize(
    "tag",
    [
        "epoch_loss",
        "train/train_loss",
        "train/xent",
        "valid/ppl",
        "valid/lr",
        "loss_1",
        "weights/norm",
        "lossy",
        "bleuish",
    ],
)
def test_a_curve_of_another_name_is_not_used_and_named(tmp_path: Path, tag: str) -> None:
    write_points(tmp_path, [(1.0, 1, {tag: 0.5})])
    curves = read_curves(tmp_path)
    assert not curves.points
    assert curves.unused == (tag,)


def test_all_files_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    write_points(tmp_path, [(1.0, 1, {"loss": 3.0}), (3.0, 3, {"loss": 1.0})], name=NAME + "b")
    torn = write_points(tmp_path, [(2.0, 2, {"loss": 2.0})], name=NAME + "a")
    torn.write_bytes(torn.read_bytes() + b"\x01\x02")
    curves = read_curves(tmp_path)
    assert [point.value for point in curves.points] == [3.0, 2.0, 1.0]
    assert curves.begins == {NAME + "a": 2.0, NAME + "b": 1.0}
    assert len(curves.files) == 2
    assert curves.torn == 1


def test_a_file_whose_name_is_no_utf_8_has_one_that_can_be_written(tmp_path: Path) -> None:
    path = write_points(tmp_path, [(1.0, 1, {"loss": 3.0})], name=NAME + "\udcff")
    assert read_curves(tmp_path).files == (NAME + "\\udcff",)
    assert read_curves(path).files == (NAME + "\\udcff",)


def test_values_are_found_by_step_and_steps_by_value(tmp_path: Path) -> None:
    write_points(
        tmp_path, [(float(step), step, {"lr": step / 10, "eval_loss": 5.0}) for step in (0, 100, 201)]
    )
    curves = read_curves(tmp_path)
    assert curves.near("learning_rate", 102, within=5) == pytest.approx(10.0)
    assert curves.near("learning_rate", 200, within=5) == pytest.approx(20.1)
    assert math.isnan(curves.near("learning_rate", 150, within=5))
    assert math.isnan(Curves().near("learning_rate", 0, within=5))
    assert curves.step_of("learning_rate", 10.0, within=0.01) == 100
    assert curves.step_of("eval_loss", 5.0, within=0.01) is None


def test_points_whose_place_makes_no_sense_are_left_out(tmp_path: Path) -> None:
    write_points(
        tmp_path, [(math.nan, 1, {"loss": 1.0}), (1e300, 1, {"loss": 1.0}), (1.0, 2**62, {"loss": 1.0})]
    )
    assert not read_curves(tmp_path).points


def test_a_folder_without_event_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="has no event file"):
        read_curves(tmp_path)
    with pytest.raises(TandemError, match="There is no folder .*nowhere"):
        read_curves(tmp_path / "nowhere")
