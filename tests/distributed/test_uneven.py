"""Real ranks of which one is slower: shares follow, what is learnt stays, and a resumed run goes on to the bit."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.distributed.ranks import run_ranks
from tests.distributed.test_run import train

import tandem.telemetry.clock
from tandem.checkpoint.restore import restore
from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.parallel.world import World
from tandem.runlog.event import ExchangeProbed, SharesChanged, StepFinished
from tandem.runlog.reader import read_records
from tandem.train.balancer import AHEAD_STEPS, WINDOW_STEPS
from tandem.train.passes import PlainPass
from tandem.train.tokens import to_tokens

SLOW_RANK, EXTRA_FORWARDS = 1, 6
"""A forward pass is about a third of a pass: the rank needs about three times as long."""
DECIDED = 2 * WINDOW_STEPS
SAVED = DECIDED + AHEAD_STEPS // 2
"""Between the decision and the step from which it holds."""
STEPS = DECIDED + AHEAD_STEPS + 10
RECIPE = f"""
name: uneven
data:
  train:
    - builtin: {{pairs: 600}}
subword: {{vocabulary: 400, max_pieces: 64}}
batch: {{target_tokens: 1536, shares: auto}}
model: {{preset: tiny, width: 64, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 256, dropout: 0.0}}
optim: {{learning_rate: 2.0e-3, warmup_steps: 40}}
evaluate: {{every_steps: null, probe_pairs: 0, sentences: 0}}
checkpoint: {{every_steps: {SAVED}, keep_last: 5}}
telemetry: {{probe_steps: {STEPS - 2}}}
"""


def learn(world: World, folder: Path, run: str) -> None:
    """Train, with one rank that does more work than it must; the clock counts work alone, whatever else runs here."""
    tandem.telemetry.clock.perf_counter = time.thread_time  # type: ignore[attr-defined]
    if world.rank == SLOW_RANK:
        _slow_down()
    train(world, folder, run, STEPS)


def _slow_down() -> None:
    call = PlainPass.__call__

    def slowed(self: PlainPass, batch: Any, **given: Any) -> Any:
        with self._clock.phase("forward"), torch.no_grad():
            for _ in range(EXTRA_FORWARDS):
                self._model(*to_tokens(batch))
        return call(self, batch, **given)

    PlainPass.__call__ = slowed  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by measured speed, the same in equal parts, and one that goes on from a checkpoint of the first."""
    folder = tmp_path_factory.mktemp("uneven")
    for shares in ("auto", "even"):
        (folder / "recipe.yaml").write_text(RECIPE.replace("shares: auto", f"shares: {shares}"))
        prepare(load_recipe(folder / "recipe.yaml", [f"data.folder={folder / 'data'}"]).recipe, workers=1)
        run_ranks(learn, 2, folder, shares)
    (folder / "recipe.yaml").write_text(RECIPE)
    shutil.copytree(folder / "auto" / "checkpoints", folder / "resumed" / "checkpoints")
    shutil.rmtree(folder / "resumed" / "checkpoints" / f"step-{STEPS:08d}")
    run_ranks(learn, 2, folder, "resumed")
    os.environ.pop("MASTER_PORT", None)
    return folder


def events(run: Path, kind: type[Any], rank: int = 0) -> list[Any]:
    records = (record for record in read_records(run) if record.rank == rank)
    return [record.event for record in records if isinstance(record.event, kind)]


def test_shares_follow_what_ranks_can_do(folder: Path) -> None:
    (changed,) = events(folder / "auto", SharesChanged)
    assert (changed.step, changed.first_step) == (DECIDED, DECIDED + AHEAD_STEPS)
    fast, slow = changed.tokens_per_s
    assert slow < 0.6 * fast
    assert changed.shares[SLOW_RANK] == pytest.approx(slow / (fast + slow), abs=0.1)
    assert events(folder / "auto", SharesChanged, rank=1) == []
    assert events(folder / "even", SharesChanged) == []


def test_the_slower_rank_computes_less_from_that_step_on(folder: Path) -> None:
    def ratio(first: int, last: int) -> float:
        spent: list[float] = [
            sum(
                step.phases["forward"] + step.phases["backward"]
                for step in events(folder / "auto", StepFinished, rank)
                if first <= step.step <= last
            )
            for rank in range(2)
        ]
        return spent[SLOW_RANK] / spent[0]

    before, after = ratio(10, DECIDED), ratio(DECIDED + AHEAD_STEPS, STEPS)
    assert before > 1.6
    assert after < 1 + (before - 1) / 2


def test_what_is_learnt_is_the_same_in_any_parts(folder: Path) -> None:
    auto, even = (events(folder / run, StepFinished) for run in ("auto", "even"))
    assert len(auto) == len(even) == STEPS
    for mine, theirs in zip(auto, even, strict=True):
        assert (mine.pairs, mine.target_tokens, mine.epoch) == (
            theirs.pairs,
            theirs.target_tokens,
            theirs.epoch,
        )
        assert mine.loss == pytest.approx(theirs.loss, rel=1e-4)
        # The same bits as long as the same pairs are dealt to the same ranks, and others afterwards.
        is_equal = (mine.loss, mine.gradient_norm) == (theirs.loss, theirs.gradient_norm)
        assert is_equal or mine.step >= DECIDED + AHEAD_STEPS
    assert [step.loss for step in auto] != [step.loss for step in even]


def test_a_run_resumed_before_its_new_shares_hold_ends_in_the_same_bits(folder: Path) -> None:
    whole, resumed = (restore(folder / run / f"checkpoints/step-{STEPS:08d}") for run in ("auto", "resumed"))
    for name, tensor in whole.model.items():
        assert torch.equal(tensor, resumed.model[name]), name
    assert whole.state["shares"] == resumed.state["shares"]
    (announced,) = events(folder / "resumed", SharesChanged)
    assert (announced.step, announced.window_steps) == (SAVED, 0)


def test_steps_are_rehearsed_with_unequal_shares_too(folder: Path) -> None:
    for rank in range(2):
        assert STEPS - 2 in [event.step for event in events(folder / "auto", ExchangeProbed, rank)]
