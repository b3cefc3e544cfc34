"""The files, as the real TensorBoard reads them."""

import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)
from tensorboard.backend.event_processing.plugin_event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator as PluginEventAccumulator,
)
from tests.unit.observe.story import Teller, scores, started, training

from tandem.observe.sinks.tensorboard import TensorBoardSink
from tandem.runlog.record import Record


def write(folder: Path, records: Iterable[Record]) -> None:
    with TensorBoardSink(folder) as sink:
        for record in records:
            sink.apply(record)


def read(folder: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return accumulator


def steps(folder: Path, tag: str) -> list[int]:
    return [each.step for each in read(folder).Scalars(tag)]


def test_every_curve_is_there(tmp_path: Path) -> None:
    write(tmp_path, training(Teller(), steps=300))
    assert set(read(tmp_path).Tags()["scalars"]) == {
        "train_loss",
        "train_nll",
        "eval_loss",
        "probe_loss",
        "BLEU",
        "chrF",
        "learning_rate",
        "global_gradient_norm",
        "steps_per_second",
        "target_tokens_per_second",
        "loss_scale",
        *(f"phase/{name}" for name in ("data", "forward", "backward", "exchange", "optimizer", "other")),
    }


def test_values_steps_and_times_are_those_of_the_log(tmp_path: Path) -> None:
    records = list(training(Teller(), steps=200))
    write(tmp_path, records)
    found = read(tmp_path)
    assert [each.step for each in found.Scalars("train_loss")] == list(range(1, 201))
    assert found.Scalars("train_loss")[9].value == pytest.approx(3 + 6 * 2.718281828 ** (-10 / 150))
    assert found.Scalars("train_loss")[9].wall_time == records[10].time_ns / 1e9
    assert [(each.step, each.value) for each in found.Scalars("BLEU")] == [
        (200, pytest.approx(scores(200).bleu))
    ]
    assert found.Scalars("target_tokens_per_second")[0].value == 100_000


def test_other_sets_have_curves_of_their_own_and_other_ranks_have_none(tmp_path: Path) -> None:
    teller = Teller()
    write(tmp_path, [teller.tell(scores(5, "test")), teller.step(1, rank=1)])
    assert set(read(tmp_path).Tags()["scalars"]) == {"BLEU/test", "chrF/test"}


def restarted(teller: Teller) -> Iterator[Record]:
    """Lost at step 1,006, with an evaluation at 1,000, and done again from step 950."""
    yield from training(teller, steps=1_006, every=500)
    yield teller.tell(started(950))
    for number in range(951, 1_031):
        yield teller.step(number, loss=1.0)


ONE_CURVE = [*range(1, 1_001), 1_010, 1_020, 1_030]


@pytest.mark.parametrize("accumulator", [EventAccumulator, PluginEventAccumulator])
def test_steps_that_are_done_again_appear_once(
    tmp_path: Path, accumulator: type[EventAccumulator | PluginEventAccumulator]
) -> None:
    write(tmp_path, restarted(Teller()))
    found = accumulator(str(tmp_path), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    curve = (
        found.Scalars("train_loss") if isinstance(found, EventAccumulator) else found.Tensors("train_loss")
    )
    evaluated = found.Scalars("BLEU") if isinstance(found, EventAccumulator) else found.Tensors("BLEU")
    assert [each.step for each in curve] == ONE_CURVE
    assert [each.step for each in evaluated] == [500]


@pytest.mark.parametrize("cut", [1, 700, 1_003, 1_008, 1_040])
def test_a_run_that_goes_on_writes_a_new_file_and_shows_one_curve(tmp_path: Path, cut: int) -> None:
    records = list(restarted(Teller()))
    write(tmp_path, records[:cut])
    write(tmp_path, records)
    assert len(list(tmp_path.iterdir())) == 2
    shown = steps(tmp_path, "train_loss")
    assert shown == sorted(set(shown))
    assert set(ONE_CURVE) - set(shown) == set()
    assert read(tmp_path).Scalars("train_loss")[-1].value == 1.0


def test_what_was_lost_with_a_killed_writer_is_written_by_the_next(tmp_path: Path) -> None:
    records = list(restarted(Teller()))
    killed = TensorBoardSink(tmp_path)
    for record in records[:600]:
        killed.apply(record)
    killed.flush()
    for record in records[600:900]:
        killed.apply(record)
    write(tmp_path, records)
    assert steps(tmp_path, "train_loss") == ONE_CURVE


def test_nothing_new_makes_no_file(tmp_path: Path) -> None:
    records = list(training(Teller(), steps=5))
    write(tmp_path, records)
    write(tmp_path, records)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_flushed_is_seen_while_the_run_goes_on(tmp_path: Path) -> None:
    sink, teller = TensorBoardSink(tmp_path), Teller()
    sink.apply(teller.step(1))
    sink.flush()
    assert steps(tmp_path, "train_loss") == [1]
    sink.apply(teller.step(2))
    sink.flush()
    assert steps(tmp_path, "train_loss") == [1, 2]


def test_a_long_run_stays_small(tmp_path: Path) -> None:
    teller = Teller()
    write(tmp_path, (teller.step(number) for number in range(290_001, 300_001)))
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size * 30 < 15_000_000


def test_a_full_disk_ends_the_writing_with_a_sentence_and_whole_records(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    sink, teller = TensorBoardSink(tmp_path), Teller()
    for number in range(1, 11):
        sink.apply(teller.step(number))
    sink.flush()
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for number in range(11, 101):
        sink.apply(teller.step(number))
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 500, hard))
    try:
        sink.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sink.failure == "TensorBoard's files are no longer written: File too large; the run log goes on"
    assert file.read_bytes() == whole
    sink.apply(teller.step(101))
    sink.close()
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_made_is_told_of_and_never_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sink = TensorBoardSink(tmp_path / "file" / "tensorboard")
    sink.apply(Teller().step(1))
    sink.close()
    assert "no longer written" in sink.failure


def test_nothing_is_written_through_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tensorboard").symlink_to("elsewhere")
    sink = TensorBoardSink(tmp_path / "tensorboard")
    for record in training(Teller(), steps=3):
        sink.apply(record)
    sink.close()
    assert "is a link" in sink.failure
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_link_that_waits_for_the_next_number_is_not_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "tensorboard"
    folder.mkdir()
    (tmp_path / "precious").write_text("mine")
    for name in ("9999999999", "x", "-1"):
        (folder / f"events.out.tfevents.{name}.tandem").write_bytes(bytes(1000))
    sink, teller = TensorBoardSink(folder), Teller()
    sink._path.symlink_to(tmp_path / "precious")
    sink.apply(teller.step(1))
    sink.flush()
    assert sink.failure
    assert (tmp_path / "precious").read_text() == "mine"
