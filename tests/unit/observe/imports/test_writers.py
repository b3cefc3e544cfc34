import re
from pathlib import Path

import pytest
from tests.unit.observe.imports.board import NAME, write_points

from tandem.errors import TandemError
from tandem.observe.imports.curves import read_curves


def write(folder: Path, steps: range, *, begin_s: float = 100.0, tag: str = "loss", name: str = NAME) -> Path:
    """A curve with a point a second."""
    points = [(begin_s + place, step, {tag: 5.0}) for place, step in enumerate(steps)]
    return write_points(folder, points, name=name)


def kinds(folder: Path) -> dict[str, set[str]]:
    """The kinds of points, by writer."""
    found: dict[str, set[str]] = {}
    for point in read_curves(folder).points:
        found.setdefault(point.writer, set()).add(point.kind)
    return found


@pytest.mark.parametrize(
    ("training", "evaluation"),
    [
        (".", "eval"),
        (".", "eval_newstest"),
        ("logs", "logs/Valid"),
        ("train", "validation"),
        ("Train", "val"),
        ("run/train/first", "run/dev/first"),
        ("train_inner", "test"),
    ],
)
def test_a_writer_beside_training_that_is_named_so_has_evaluations(
    tmp_path: Path, training: str, evaluation: str
) -> None:
    write(tmp_path / training, range(10, 100, 10))
    write(tmp_path / evaluation, range(50, 100, 40))
    assert kinds(tmp_path) == {
        training.removeprefix("."): {"train_loss"},
        evaluation: {"eval_loss"},
    }


@pytest.mark.parametrize(
    "writer", ["test_run1", "dev-big", "logs/eval_0", "revaluation", "eval", "runs/test", "validity"]
)
def test_a_name_alone_makes_no_evaluation(tmp_path: Path, writer: str) -> None:
    write(tmp_path / writer, range(10, 100, 10))
    assert kinds(tmp_path) == {writer: {"train_loss"}}


@pytest.mark.parametrize(
    "others", [("test_run1", "test_run2"), ("runs/test", "runs/first"), (".", "dev-big")]
)
def test_runs_beside_each_other_are_refused_by_their_names(tmp_path: Path, others: tuple[str, str]) -> None:
    for place, writer in enumerate(others):
        write(tmp_path / writer, range(10, 100, 10), begin_s=100.0 + 0.5 * place)
    first, second = (re.escape(str(tmp_path / writer)) for writer in others)
    with pytest.raises(
        TandemError, match=rf"several runs \({first}, {second} each have their own loss\): name one of them"
    ):
        read_curves(tmp_path)


def test_one_file_of_several_runs_can_be_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a", range(10, 100, 10))
    write(tmp_path / "b", range(10, 100, 10))
    assert len(read_curves(file).points) == len(read_curves(tmp_path / "a").points) == 9


def test_a_run_after_another_that_began_anew_is_another_run(tmp_path: Path) -> None:
    write(tmp_path / "a", range(10, 100, 10))
    write(tmp_path / "b", range(20, 200, 20), begin_s=1000.0)
    with pytest.raises(TandemError, match="several runs"):
        read_curves(tmp_path)


@pytest.mark.parametrize("first", [60, 100, 500])
def test_a_run_that_goes_on_in_another_folder_is_one(tmp_path: Path, first: int) -> None:
    write(tmp_path / "a", range(10, 100, 10))
    write(tmp_path / "b", range(first, first + 50, 10), begin_s=1000.0)
    assert [point.step for point in read_curves(tmp_path).points][-5:] == list(range(first, first + 50, 10))


def test_a_run_that_goes_on_while_the_other_trains_is_another_run(tmp_path: Path) -> None:
    write(tmp_path / "a", range(10, 100, 10))
    write(tmp_path / "b", range(60, 160, 10), begin_s=104.0)
    with pytest.raises(TandemError, match="several runs"):
        read_curves(tmp_path)


def test_learning_rates_of_several_runs_are_refused_too_and_many_are_not_all_named(tmp_path: Path) -> None:
    for number in range(8):
        write(tmp_path / f"run{number}", range(10, 100, 10), tag="lr")
    with pytest.raises(TandemError, match=r"run5 and 2 more each have their own lr\)"):
        read_curves(tmp_path)


def test_means_over_epochs_are_left_out_where_the_steps_between_are_known(tmp_path: Path) -> None:
    write(tmp_path / "train_inner", range(10, 100, 10))
    write(tmp_path / "train", range(50, 101, 50), begin_s=104.5)
    write(tmp_path / "valid", range(50, 101, 50), begin_s=104.7)
    assert kinds(tmp_path) == {"train_inner": {"train_loss"}, "valid": {"eval_loss"}}


def test_losses_on_a_test_set_are_not_mixed_with_those_on_the_valid_set(tmp_path: Path) -> None:
    for writer, steps in (("train", range(10, 100, 10)), ("valid", range(50, 60)), ("test", range(50, 60))):
        write(tmp_path / writer, steps)
    assert kinds(tmp_path) == {"train": {"train_loss"}, "valid": {"eval_loss"}}


def test_what_only_evaluations_write_is_no_training(tmp_path: Path) -> None:
    write(tmp_path / "train", range(10, 100, 10))
    write_points(tmp_path / "valid", [(200.0, 90, {"loss": 4.0, "lr": 0.1, "bleu": 30.0})])
    assert kinds(tmp_path)["valid"] == {"eval_loss", "score"}


def test_a_folder_whose_name_is_no_utf_8_is_named_in_a_way_that_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / "a\udcff", range(10, 100, 10))
    write(tmp_path / "b", range(10, 100, 10))
    with pytest.raises(TandemError, match=r"a\\udcff, "):
        read_curves(tmp_path)
