"""Whole runs on real ranks: the same updates on any number of them, and resumed on another."""

import os
import platform
import socket
from pathlib import Path

import pytest
from tests.distributed.ranks import leave, run_ranks

from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.parallel.world import World
from tandem.runlog.event import (
    DeviceMeasured,
    EvaluationFinished,
    ExchangeProbed,
    HostDescribed,
    LossMeasured,
    StepFinished,
    TrainingStarted,
)
from tandem.runlog.reader import read_records
from tandem.train.assemble import Options, train_rank

RECIPE = """
name: ranks
data:
  train:
    - builtin: {pairs: 150}
  valid:
    builtin: {pairs: 20, split: valid}
subword: {vocabulary: 400, max_pieces: 64}
batch: {target_tokens: 512}
model: {preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64, dropout: 0.0}
optim: {learning_rate: 2.0e-3, warmup_steps: 4}
train: {max_steps: 14}
evaluate: {every_steps: 7, probe_pairs: 20, beam: 2}
telemetry: {probe_steps: 10}
"""


def train(world: World, folder: Path, run: str, steps: int) -> None:
    """Leave the test's own world, and meet again as a run does."""
    os.environ["MASTER_PORT"] = str(world.gather(_free_port())[0])
    leave(world)
    recipe = load_recipe(
        folder / "recipe.yaml", [f"data.folder={folder / 'data'}", f"train.max_steps={steps}"]
    ).recipe
    train_rank(folder / run, recipe, Options(device="cpu", batch_tokens=200))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run on one rank, and one that goes from two ranks to three in the middle of its second epoch."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "recipe.yaml").write_text(RECIPE)
    prepare(load_recipe(folder / "recipe.yaml", [f"data.folder={folder / 'data'}"]).recipe, workers=1)
    run_ranks(train, 1, folder, "alone", 14)
    run_ranks(train, 2, folder, "grown", 9)
    run_ranks(train, 3, folder, "grown", 14)
    return folder


def steps_of(run: Path, rank: int = 0) -> list[StepFinished]:
    records = (record for record in read_records(run) if record.rank == rank)
    return [record.event for record in records if isinstance(record.event, StepFinished)]


def test_another_number_of_ranks_goes_on_with_the_same_updates(folder: Path) -> None:
    alone, grown = steps_of(folder / "alone"), steps_of(folder / "grown")
    assert [fact.step for fact in grown] == list(range(1, 15))
    assert alone[-1].epoch > alone[0].epoch
    for ours, theirs in zip(alone, grown, strict=True):
        assert (ours.pairs, ours.target_tokens, ours.epoch) == (
            theirs.pairs,
            theirs.target_tokens,
            theirs.epoch,
        )
        assert theirs.loss == pytest.approx(ours.loss, rel=1e-5)
        assert theirs.gradient_norm == pytest.approx(ours.gradient_norm, rel=1e-3)


def test_every_rank_logs_its_steps_and_one_tells_what_is_the_same_for_all(folder: Path) -> None:
    assert [len(steps_of(folder / "grown", rank)) for rank in range(3)] == [14, 14, 5]
    events = [record.event for record in read_records(folder / "grown")]
    started = [event for event in events if isinstance(event, TrainingStarted)]
    assert [(event.ranks, event.step) for event in started] == [(2, 0), (3, 9)]
    assert sum(isinstance(event, EvaluationFinished) for event in events) == 3


def test_the_exchange_is_probed_at_the_same_step_by_all_ranks_and_by_none_that_is_alone(folder: Path) -> None:
    def probed(run: str) -> list[tuple[int | None, int]]:
        records = read_records(folder / run)
        return sorted(
            (each.rank, each.event.step) for each in records if isinstance(each.event, ExchangeProbed)
        )

    assert probed("grown") == [(0, 10), (1, 10), (2, 10)]
    assert probed("alone") == []


def test_bytes_that_are_sent_are_those_of_the_gradients(folder: Path) -> None:
    events = [record.event for record in read_records(folder / "grown")]
    (*_, started) = [event for event in events if isinstance(event, TrainingStarted)]
    assert started.gradient_bytes >= 4 * started.parameters
    for rank in range(3):
        sent = {step.sent_bytes for step in steps_of(folder / "grown", rank)}
        # What rides along is a few numbers for each rank, and there were two of them before there were three.
        assert len(sent) <= 2
        for sent_bytes in sent:
            assert sent_bytes == pytest.approx(started.gradient_bytes, rel=1e-3)
    assert {step.sent_bytes for step in steps_of(folder / "alone")} == {0}


def test_each_rank_measures_its_device_and_one_of_them_has_the_host_sampled(folder: Path) -> None:
    records = list(read_records(folder / "grown"))
    measured = [each.rank for each in records if isinstance(each.event, DeviceMeasured)]
    assert sorted(str(rank) for rank in measured) == ["0", "0", "1", "1", "2"]
    described = [each.host for each in records if isinstance(each.event, HostDescribed)]
    assert described == [platform.node()] * 2
    numbers = [each.sequence for each in records if each.host is not None]
    assert sorted(numbers) == list(range(len(numbers)))


def test_losses_do_not_depend_on_how_many_ranks_measure_them(folder: Path) -> None:
    def measured(run: Path) -> dict[tuple[int, str], LossMeasured]:
        facts = (record.event for record in read_records(run))
        return {(fact.step, fact.set): fact for fact in facts if isinstance(fact, LossMeasured)}

    alone, grown = measured(folder / "alone"), measured(folder / "grown")
    for key in ((7, "valid"), (7, "probe"), (14, "valid"), (14, "probe")):
        assert grown[key].loss == pytest.approx(alone[key].loss, rel=1e-4)
        assert (grown[key].pairs, grown[key].target_tokens) == (alone[key].pairs, alone[key].target_tokens)
