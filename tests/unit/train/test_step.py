from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.learning import SPECIAL, Learner, build_batch, build_learner, build_update, pack, train, weights
from torch import Tensor, nn

from tandem.data.batches.batch import PackedBatch
from tandem.data.batches.stream import UpdateBatches
from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld
from tandem.telemetry.clock import PHASES
from tandem.train.asked import Asked
from tandem.train.precision import FIRST_SCALE
from tandem.train.tokens import to_tokens

WORLD = SoloWorld(device=torch.device("cpu"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same_bits(one: Learner, other: Learner) -> bool:
    held = weights(other)
    return all(torch.equal(value, held[name]) for name, value in weights(one).items())


def test_the_loss_is_a_sum_and_its_gradient_is_divided_once_by_all_target_tokens() -> None:
    learner, plain = build_learner(WORLD, optim={"clip_norm": 0.0}), build_learner(WORLD)
    update = build_update(WORLD, 1)
    total, likelihood = torch.zeros(()), torch.zeros(())
    for batch in update.batches:
        logits = plain.model.logits(plain.model(*to_tokens(batch))).flatten(0, -2)
        labels = batch.labels.flatten().long()
        options: dict[str, Any] = {"ignore_index": SPECIAL.pad, "reduction": "sum"}
        total = total + F.cross_entropy(logits, labels, label_smoothing=0.1, **options)
        likelihood = likelihood + F.cross_entropy(logits, labels, **options)
    gradients = torch.autograd.grad(total / update.target_tokens, list(plain.model.parameters()))
    result = learner.step(update, step=1, asked=Asked())
    numbers = result.read()
    assert numbers.loss_sum == pytest.approx(total.item(), rel=1e-5)
    assert numbers.nll_sum == pytest.approx(likelihood.item(), rel=1e-5)
    norm = float(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    assert numbers.gradient_norm == pytest.approx(norm, rel=1e-4)
    assert (result.target_tokens, result.pairs, result.batches) == (update.target_tokens, 13, 5)
    assert result.learning_rate == pytest.approx(3e-3 / 5)
    assert not numbers.skipped


def test_dropout_depends_on_the_step_and_not_on_what_was_drawn_before() -> None:
    one, other, later = (build_learner(WORLD, model={"dropout": 0.3}) for _ in range(3))
    update = build_update(WORLD, 1)
    torch.manual_seed(1)
    first = one.step(update, step=1, asked=Asked()).read()
    torch.manual_seed(2)
    other.step(update, step=1, asked=Asked())
    assert same_bits(one, other)
    assert later.step(update, step=2, asked=Asked()).read().loss_sum != first.loss_sum


def test_packed_rows_teach_what_padded_ones_teach() -> None:
    padded, packed = build_learner(WORLD), build_learner(WORLD)
    pairs = [([5, 6, 7], [8]), ([9], [10, 11]), ([12, 13], [14, 15, 16, 17])]
    update = replace(build_update(WORLD, 1), batches=(pack(pairs), pack(pairs[:1])))
    twin = replace(update, batches=tuple(build_batch(pairs[:count]) for count in (3, 1)))
    numbers = packed.step(update, step=1, asked=Asked()).read()
    reference = padded.step(twin, step=1, asked=Asked()).read()
    assert isinstance(update.batches[0], PackedBatch)
    assert numbers.loss_sum == pytest.approx(reference.loss_sum, rel=1e-5)
    assert numbers.gradient_norm == pytest.approx(reference.gradient_norm, rel=1e-5)


def test_every_phase_of_a_step_is_timed() -> None:
    learner = build_learner(WORLD)
    train(learner, WORLD, range(1, 2))
    split = learner.clock.read(1)
    assert split is not None
    assert tuple(split) == PHASES
    assert all(split[phase] > 0 for phase in ("forward", "backward", "exchange", "optimizer"))


def test_an_overflow_in_fp16_is_skipped_and_halves_the_scale() -> None:
    learner = build_learner(WORLD, precision="fp16")
    train(learner, WORLD, range(1, 2))
    held = weights(learner)
    bias = learner.model.get_parameter("decoder_norm.bias")
    handle = bias.register_hook(lambda gradient: gradient + float("inf"))  # type: ignore[no-untyped-call]
    skipped = train(learner, WORLD, range(2, 3))[0]
    handle.remove()
    assert skipped.skipped
    assert skipped.loss_scale == FIRST_SCALE
    assert all(torch.equal(value, held[name]) for name, value in weights(learner).items())
    good = train(learner, WORLD, range(3, 4))[0]
    assert not good.skipped
    assert good.loss_scale == FIRST_SCALE / 2


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_reports_the_loss_and_the_true_gradient_of_fp32(precision: Any) -> None:
    half = train(build_learner(WORLD, precision=precision), WORLD, range(1, 4))
    full = train(build_learner(WORLD), WORLD, range(1, 4))
    for mine, reference in zip(half, full, strict=True):
        assert mine.loss_sum == pytest.approx(reference.loss_sum, rel=0.02)
        assert mine.gradient_norm == pytest.approx(reference.gradient_norm, rel=0.05)


class RowLimit:
    """Memory for so many rows of a batch and no more."""

    def __init__(self, model: nn.Module, rows: int) -> None:
        self.rows = rows
        self.failures = 0
        model.register_forward_hook(self._check)

    def _check(self, _module: nn.Module, _given: Any, states: Tensor) -> None:
        if len(states) > self.rows:
            self.failures += 1
            raise torch.OutOfMemoryError("planted")


def fixed_update() -> UpdateBatches:
    """Batches of one size, so that what is learnt from the first counts for all."""
    update = build_update(WORLD, 1)
    return replace(update, batches=(update.batches[0],) * 3)


def test_a_size_that_failed_is_not_tried_again() -> None:
    learner = build_learner(WORLD)
    limit = RowLimit(learner.model, rows=2)
    update = fixed_update()
    results = [learner.step(update, step=step, asked=Asked()) for step in (1, 2)]
    assert limit.failures == 1
    for result in results:
        assert [split.pieces for split in result.splits] == [2, 2, 2]
        assert [split.target_tokens for split in result.splits] == [update.batches[0].target_tokens] * 3
        assert result.read().split == 3


def test_a_single_pair_that_does_not_fit_ends_the_run_with_a_sentence() -> None:
    learner = build_learner(WORLD)
    RowLimit(learner.model, rows=0)
    with pytest.raises(TandemError, match="A single pair in a batch of .* does not fit into memory"):
        learner.step(fixed_update(), step=1, asked=Asked())


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_on_a_gpu_no_step_waits_for_the_device(precision: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    world = SoloWorld(device=torch.device("cuda", 0))
    learner = build_learner(world, precision=precision, optim={"ema_decay": 0.9}, model={"dropout": 0.1})
    generator = torch.Generator().manual_seed(1)
    pairs = [(torch.randint(4, 32, (9,), generator=generator).tolist(), [5, 6, 7]) for _ in range(8)]
    batch = pack(pairs).map(torch.Tensor.pin_memory)
    update = replace(build_update(world, 1), batches=(batch, batch))
    learner.step(update, step=1, asked=Asked()).read()
    try:
        torch.cuda.set_sync_debug_mode("error")
        results = [learner.step(update, step=step, asked=Asked(stop=step == 3)) for step in range(2, 6)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    numbers = [result.read() for result in results]
    assert [each.asked.stop for each in numbers] == [False, True, False, False]
    assert not any(each.skipped for each in numbers)
    assert numbers[-1].loss_sum < numbers[0].loss_sum
    split = learner.clock.read(5)
    assert split is not None
    assert split["forward"] > 0


@pytest.mark.gpu
def test_on_a_gpu_that_is_too_small_batches_are_split() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    world = SoloWorld(device=torch.device("cuda", 0))
    update = build_update(world, 1, pairs=3)
    row = update.batches[0].map(lambda tensor: torch.cat([tensor] * 4000))
    update = replace(update, batches=(replace(row, pairs=12_000, target_tokens=4000 * row.target_tokens),))
    plain, short = build_learner(world), build_learner(world)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    reference = plain.step(update, step=1, asked=Asked()).read()
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.6 * peak / torch.cuda.mem_get_info()[1])
    try:
        result = short.step(update, step=1, asked=Asked())
        numbers = result.read()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert [split.pieces >= 2 for split in result.splits] == [True]
    assert numbers.loss_sum == pytest.approx(reference.loss_sum, rel=1e-4)
    assert numbers.gradient_norm == pytest.approx(reference.gradient_norm, rel=1e-4)
