"""Whole runs whose hosts exchange encoded gradients: resumed in the same bits, or with what can be had of them."""

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from tests.distributed.ranks import leave, run_ranks
from tests.distributed.test_hosts import RECIPE

from tandem.checkpoint.layout import step_folder
from tandem.config import Recipe, load_recipe
from tandem.data.prepare import prepare
from tandem.errors import TandemError
from tandem.parallel.residual import Residual
from tandem.parallel.world import World
from tandem.runlog.event import (
    Event,
    ExchangeChosen,
    ExchangeProbed,
    ResidualsReset,
    ResidualsRestored,
    StepFinished,
)
from tandem.runlog.reader import read_records
from tandem.train.assemble import Options, train_rank
from tandem.train.optim import Applied, Optimizer

PACKED = ("exchange.mode=packed", "exchange.exact_steps=3")
AUTO = "exchange.mode=auto"
FILES = ("model.safetensors", "optimizer.safetensors")

Fact = TypeVar("Fact", bound=Event)


def recipe_of(folder: Path, *overrides: str) -> Recipe:
    return load_recipe(folder / "recipe.yaml", [f"data.folder={folder / 'data'}", *overrides]).recipe


def train(
    world: World,
    folder: Path,
    run: str,
    hosts: Sequence[int],
    overrides: Sequence[str],
    spoil: Callable[[], None] | None = None,
) -> str:
    """Leave the test's own world, to meet again as ranks of hosts with disks of their own; `spoil` is for host h2."""
    places = [(number, local) for number, ranks in enumerate(hosts, 1) for local in range(ranks)]
    number, local = places[world.rank]
    name = f"h{number}"
    platform.node = lambda: name
    os.environ.update(LOCAL_RANK=str(local), LOCAL_WORLD_SIZE=str(hosts[number - 1]))
    leave(world)
    if spoil is not None and name == "h2":
        spoil()
    recipe = recipe_of(folder, *overrides)
    try:
        train_rank(folder / run / name, recipe, Options(device="cpu", batch_tokens=200))
    except TandemError as error:
        return str(error)
    return ""


def train_hosts(folder: Path, run: str, *overrides: str, hosts: Sequence[int] = (1, 1)) -> None:
    told = run_ranks(train, sum(hosts), folder, run, hosts, overrides)
    assert told == [""] * sum(hosts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed run of ten steps on two hosts to which nothing happened, and one of six."""
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "recipe.yaml").write_text(RECIPE)
    prepare(recipe_of(folder), workers=1)
    train_hosts(folder, "six", *PACKED, "train.max_steps=6")
    train_hosts(folder, "ten", *PACKED, "train.max_steps=10")
    return folder


def copy_of(folder: Path, name: str) -> Path:
    shutil.copytree(folder / "six", folder / name)
    return folder / name


def facts(run: Path, kind: type[Fact]) -> list[Fact]:
    return [record.event for record in read_records(run) if isinstance(record.event, kind)]


def learnt(run: Path, host: str, step: int) -> list[bytes]:
    return [(step_folder(run / host / "checkpoints", step) / name).read_bytes() for name in FILES]


def residual_folders(run: Path, host: str) -> list[str]:
    home = run / host / "residuals"
    return sorted(str(path.parent.relative_to(home)) for path in home.glob("step-*/*/manifest.json"))


def test_each_host_keeps_its_own_residuals_for_the_checkpoints_that_are_there(folder: Path) -> None:
    for host, index in (("h1", 0), ("h2", 1)):
        steps = sorted(path.name for path in (folder / "ten" / host / "checkpoints").glob("step-????????"))
        kept = residual_folders(folder / "ten", host)
        assert kept == [f"{step}/host-{index}-of-2-share-0-of-1" for step in steps if step > "step-00000003"]
    assert learnt(folder / "ten", "h1", 10) == learnt(folder / "ten", "h2", 10)
    sent = {event.step: event.sent_bytes for event in facts(folder / "ten" / "h1", StepFinished)}
    assert sent[3] > 4 * sent[4]
    (chosen,) = facts(folder / "ten" / "h1", ExchangeChosen)
    assert (chosen.mode, chosen.reason, chosen.hosts, chosen.shares) == ("packed", "ordered", 2, 1)
    assert chosen.link_bytes[0] > 1.8 * chosen.link_bytes[1] > 5 * chosen.link_bytes[2]


def test_a_resumed_run_ends_in_the_same_bits(folder: Path) -> None:
    run = copy_of(folder, "resumed")
    train_hosts(folder, "resumed", *PACKED, "train.max_steps=10")
    assert learnt(run, "h1", 10) == learnt(folder / "ten", "h1", 10)
    (restored,) = facts(run / "h1", ResidualsRestored)
    assert (restored.expected, restored.found, restored.is_same_layout) == (2, 2, True)


@pytest.mark.parametrize("killed", ["residuals", "checkpoint", "both"])
def test_a_host_that_was_killed_while_it_saved_goes_on_in_the_same_bits(folder: Path, killed: str) -> None:
    """What it had of the last step is gone; the other host has all of it."""
    run = copy_of(folder, f"killed while saving {killed}")
    if killed != "checkpoint":
        shutil.rmtree(step_folder(run / "h2" / "residuals", 6))
    if killed != "residuals":
        shutil.rmtree(step_folder(run / "h2" / "checkpoints", 6))
    train_hosts(folder, run.name, *PACKED, "train.max_steps=10")
    assert learnt(run, "h1", 10) == learnt(run, "h2", 10) == learnt(folder / "ten", "h1", 10)


def test_residuals_that_are_lost_with_their_disk_count_as_zero_and_the_log_says_so(folder: Path) -> None:
    run = copy_of(folder, "lost")
    shutil.rmtree(run / "h2")
    train_hosts(folder, "lost", *PACKED, "train.max_steps=10")
    (restored,) = facts(run / "h1", ResidualsRestored)
    assert (restored.expected, restored.found) == (2, 1)
    assert learnt(run, "h1", 10) == learnt(run, "h2", 10) != learnt(folder / "ten", "h1", 10)


def test_on_another_number_of_hosts_and_ranks_their_sum_is_shared_out(folder: Path) -> None:
    run = copy_of(folder, "grown")
    train_hosts(folder, "grown", *PACKED, "train.max_steps=8", hosts=(1, 1, 1))
    train_hosts(folder, "grown", *PACKED, "train.max_steps=10", hosts=(2, 2))
    restored = facts(run / "h1", ResidualsRestored)
    assert [(each.step, each.expected, each.found, each.is_same_layout) for each in restored] == [
        (6, 2, 2, False),
        (8, 3, 2, False),
    ]
    assert learnt(run, "h1", 10) == learnt(run, "h2", 10)
    losses = [
        {event.step: event.loss for event in facts(folder / name / "h1", StepFinished)}
        for name in ("ten", "grown")
    ]
    assert losses[1][10] == pytest.approx(losses[0][10], rel=0.02)


def test_the_mode_goes_on_when_a_run_is_resumed_and_another_may_be_ordered(folder: Path) -> None:
    run = copy_of(folder, "changed")
    train_hosts(folder, "changed", AUTO, "exchange.exact_steps=3", "train.max_steps=8")
    train_hosts(folder, "changed", "exchange.mode=bf16", "exchange.exact_steps=3", "train.max_steps=9")
    train_hosts(folder, "changed", "exchange.mode=exact", "train.max_steps=10")
    chosen = facts(run / "h1", ExchangeChosen)
    assert [(each.mode, each.previous, each.reason) for each in chosen] == [
        ("packed", "", "ordered"),
        ("packed", "packed", "resumed"),
        ("bf16", "packed", "ordered"),
        ("exact", "bf16", "ordered"),
    ]
    restored = [(each.step, each.found, each.is_used) for each in facts(run / "h1", ResidualsRestored)]
    assert restored == [(6, 2, True), (8, 2, True), (9, 0, False)]
    assert learnt(run, "h1", 10) == learnt(run, "h2", 10)


def test_a_run_on_one_host_is_exact_and_remembers_its_mode(folder: Path) -> None:
    run = copy_of(folder, "shrunk")
    train_hosts(folder, "shrunk", AUTO, "train.max_steps=8", hosts=(1,))
    train_hosts(folder, "shrunk", AUTO, "train.max_steps=10", "exchange.exact_steps=3", hosts=(1, 1))
    restored = facts(run / "h1", ResidualsRestored)
    assert [(each.step, each.expected, each.found, each.is_used) for each in restored] == [(6, 2, 0, False)]
    assert [each.reason for each in facts(run / "h1", ExchangeChosen)] == ["ordered", "resumed"]


def test_on_one_host_no_byte_crosses_a_link(folder: Path) -> None:
    train_hosts(folder, "one host", *PACKED, "train.max_steps=4", hosts=(2,))
    (chosen,) = facts(folder / "one host" / "h1", ExchangeChosen)
    assert (chosen.mode, chosen.reason, chosen.hosts, chosen.link_bytes) == ("exact", "one host", 1, (0,))


def test_a_mode_is_chosen_by_measurement_once_and_alike_on_every_rank(folder: Path) -> None:
    train_hosts(
        folder, "auto", AUTO, "exchange.exact_steps=3", "train.max_steps=182", "evaluate.every_steps=null"
    )
    started, chosen = facts(folder / "auto" / "h1", ExchangeChosen)
    assert (started.step, started.mode, started.reason) == (0, "exact", "unmeasured")
    # Later only where its probes differ too much to tell.
    assert chosen.step in range(60, 181, 20)
    assert chosen.reason == "measured"
    assert chosen.mode in chosen.modes
    assert all(seconds > 0 for seconds in (*chosen.exchange_s, chosen.compute_s))
    assert chosen.spread_s >= 0
    probed = {event.step for event in facts(folder / "auto" / "h2", ExchangeProbed)}
    assert probed == {*range(20, chosen.step + 1, 20), 180}
    for host in ("h1", "h2"):
        sent = {event.step: event.sent_bytes for event in facts(folder / "auto" / host, StepFinished)}
        assert (sent[chosen.step + 1] == sent[chosen.step]) is (chosen.mode == "exact")
    assert learnt(folder / "auto", "h1", 182) == learnt(folder / "auto", "h2", 182)


def swap_second_moments_after_step_three() -> None:
    """As faulty memory might: the weights stay equal until the moments are used."""
    step = Optimizer.step

    def spoilt(self: Optimizer, **arguments: Any) -> Applied:
        applied = step(self, **arguments)
        if arguments["step"] == 3:
            moments = self.second_moment
            moments[[0, 1]] = moments[[1, 0]]
            assert moments[0] != moments[1]
        return applied

    Optimizer.step = spoilt  # type: ignore[method-assign]


def test_ranks_that_differ_are_noticed_before_a_checkpoint_is_written(folder: Path) -> None:
    overrides = (*PACKED, "evaluate.every_steps=null", "checkpoint.every_steps=3", "train.max_steps=9")
    told = run_ranks(train, 2, folder, "differ", (1, 1), overrides, swap_second_moments_after_step_three)
    assert told == [told[0]] * 2
    assert told[0].startswith("Rank 0 and rank 1 differ after step 3, first in second_moment.")
    for host in ("h1", "h2"):
        assert not list((folder / "differ" / host / "checkpoints").glob("step-????????"))


def flip_a_bit_of_a_residual_after_step_five() -> None:
    """One of the exponent, which makes the number so large that no norm can hold it."""
    commit, steps = Residual.commit, iter(range(4, 100))

    def spoilt(self: Residual, skipped: torch.Tensor) -> None:
        commit(self, skipped)
        if next(steps) == 5:
            self.current.view(torch.int32)[7] |= 1 << 30

    Residual.commit = spoilt  # type: ignore[method-assign]


def poison_a_residual_after_step_five() -> None:
    commit, steps = Residual.commit, iter(range(4, 100))

    def spoilt(self: Residual, skipped: torch.Tensor) -> None:
        commit(self, skipped)
        if next(steps) == 5:
            self.current[7] = float("nan")

    Residual.commit = spoilt  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "spoil", [poison_a_residual_after_step_five, flip_a_bit_of_a_residual_after_step_five]
)
def test_residuals_that_are_not_finite_are_reset_and_the_run_goes_on(
    folder: Path, spoil: Callable[[], None]
) -> None:
    run = folder / spoil.__name__
    told = run_ranks(train, 2, folder, run.name, (1, 1), (*PACKED, "train.max_steps=10"), spoil)
    assert told == ["", ""]
    (reset,) = facts(run / "h1", ResidualsReset)
    assert (reset.step, reset.skipped, reset.ranks) == (8, 3, (1,))
    skipped = [event.step for event in facts(run / "h1", StepFinished) if event.skipped]
    assert skipped == [6, 7, 8]
    assert learnt(run, "h1", 10) == learnt(run, "h2", 10)
