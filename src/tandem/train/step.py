"""One update on one rank: micro-batches, gradients, their sum over ranks, new weights; nothing is waited for."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.data.batches.stream import UpdateBatches
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import World
from tandem.runlog.event import BatchSplit
from tandem.telemetry.clock import PhaseClock
from tandem.train.asked import Asked
from tandem.train.balancer import NUMBERS_A_RANK, Balancer
from tandem.train.exchanger import Exchanger
from tandem.train.optim import Optimizer
from tandem.train.passes import Pass
from tandem.train.precision import Precision
from tandem.train.probe import ExchangeProbe, ProbedStep, Wait
from tandem.train.schedule import Schedule
from tandem.train.seeds import derived_seed
from tandem.train.split import Splitter

__all__ = ["SLOTS", "StepNumbers", "StepResult", "TrainingStep", "count_slots"]

_LOSS, _NLL, _SPLIT, _ASKED = range(4)
SLOTS = _ASKED + len(fields(Asked))
"""Numbers that ride with the gradients: give so many to GradientBuckets, or `count_slots` of them."""


def count_slots(world: World) -> int:
    """Count the slots for ranks that also tell each other how fast they are."""
    return SLOTS + (NUMBERS_A_RANK * world.size if world.size > 1 else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNumbers:
    """What a step came to, over all ranks and the same on each."""

    loss_sum: float
    """What was minimised, summed over target tokens."""
    nll_sum: float
    """Negative log-likelihood without smoothing, summed over target tokens."""
    gradient_norm: float
    """Of the true gradient, before clipping."""
    skipped: bool
    loss_scale: float
    """As it was in this step."""
    split: int
    """Batches that some rank had to split for lack of memory."""
    asked: Asked
    speeds: tuple[float, ...] = ()
    """What ranks told of their speed, for their Balancer; empty where the buckets have no slots for it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """A step whose numbers are still on their way; counts are of the whole update, over all ranks."""

    step: int
    target_tokens: int
    source_tokens: int
    pairs: int
    own_share: float
    """The part of the update's tokens that this rank was dealt; 0: not counted."""
    batches: int
    """Micro-batches of this rank, before any was split."""
    learning_rate: float
    splits: tuple[BatchSplit, ...]
    """Of this rank."""
    numbers: Tensor
    """On the host once `ready` is past."""
    ready: torch.cuda.Event | None
    sent_bytes: int
    """That this rank gave to be summed."""
    probed: ProbedStep | None = None
    """Where the step was rehearsed without exchange."""

    def read(self) -> StepNumbers:
        """The numbers; waits for this step, but not for later ones."""
        if self.ready is not None:
            self.ready.synchronize()
        held: list[float] = self.numbers.tolist()
        *speeds, norm, skipped, scale = held[SLOTS:]
        return StepNumbers(
            loss_sum=held[_LOSS],
            nll_sum=held[_NLL],
            gradient_norm=norm,
            skipped=skipped > 0,
            loss_scale=scale,
            split=round(held[_SPLIT]),
            asked=Asked.from_numbers(held[_ASKED:SLOTS]),
            speeds=tuple(speeds),
        )


class TrainingStep:
    """Makes one update after another; every rank must make the same ones."""

    def __init__(
        self,
        learn: Pass,
        *,
        world: World,
        buckets: GradientBuckets,
        optimizer: Optimizer,
        precision: Precision,
        schedule: Schedule,
        seed: int,
        clock: PhaseClock,
        probe_steps: int | None = None,
        exchanger: Exchanger | None = None,
        balancer: Balancer | None = None,
    ) -> None:
        """The buckets hold the model's parameters and SLOTS slots, or with a balancer those of `count_slots`.

        Without an exchanger they sum exactly.
        """
        self._learn = learn
        self._world = world
        self._buckets = buckets
        self._optimizer = optimizer
        self._precision = precision
        self._schedule = schedule
        self._seed = seed
        self._clock = clock
        self._balancer = balancer
        self._probe = ExchangeProbe(world, clock=clock, every_steps=probe_steps)
        self._exchanger = exchanger
        self._splitter = Splitter()

    def __call__(self, update: UpdateBatches, *, step: int, asked: Asked) -> StepResult:
        """Make update number `step`, from 1; what this rank asks for is heard by all in the result."""
        self._world.pulse.beat(step)
        probed = self._maybe_probe(update, step)
        if self._exchanger is not None:
            self._exchanger.begin(step, scale=self._precision.maybe_scale)
        splits = self._accumulate(update, step)
        self._fill_slots(asked, step=step, splits=len(splits))
        computed = self._clock.stamp() if self._is_choosing else None
        with self._clock.phase("exchange"):
            self._buckets.finish()
        exchanged = self._clock.stamp() if self._is_choosing or probed is not None else None
        if probed is not None:
            probed = replace(probed, exchanged=exchanged)
        learning_rate = self._schedule(step)
        with self._clock.phase("optimizer"):
            numbers = self._apply(step, learning_rate)
        self._clock.finish(step)
        if self._exchanger is not None and self._is_choosing:
            wait = Wait(clock=self._clock, computed=computed, exchanged=exchanged)
            self._exchanger.note_step(step, wait, probed)
        return StepResult(
            step=step,
            target_tokens=update.target_tokens,
            source_tokens=update.source_tokens,
            pairs=update.pairs,
            own_share=update.own_tokens / (update.source_tokens + update.target_tokens),
            batches=len(update.batches),
            learning_rate=learning_rate,
            splits=splits,
            numbers=numbers.to("cpu", non_blocking=True),
            ready=_mark(self._world.device),
            sent_bytes=self._buckets.sent_bytes,
            probed=probed,
        )

    @property
    def _is_choosing(self) -> bool:
        """Whether the mode of the exchange is still to be chosen."""
        return self._exchanger is not None and self._exchanger.is_undecided

    def _maybe_probe(self, update: UpdateBatches, step: int) -> ProbedStep | None:
        """Rehearse the step without exchange, if one is due; then also try other ways to exchange."""
        wants = self._exchanger is not None and self._exchanger.wants_probe(step)
        if not (wants or self._probe.is_due(step)):
            return None
        probed = self._probe.rehearse(lambda: self._rehearse(update, step))
        if probed is None or self._exchanger is None or not wants:
            return probed
        with self._clock.aside():
            self._exchanger.try_modes(step, scale=self._precision.maybe_scale)
        return replace(probed, begun=self._clock.stamp())

    def _rehearse(self, update: UpdateBatches, step: int) -> bool:
        """Do all passes of an update with no word to other ranks, if memory suffices; their gradients are cleared."""
        self._buckets.clear()
        cut = [self._splitter.cut(batch) for batch in update.batches]
        failed = self._try(cut, update=update, step=step, sends=False)
        if failed is not None:
            torch.cuda.empty_cache()
        self._world.pulse.beat()
        return failed is None

    def _accumulate(self, update: UpdateBatches, step: int) -> tuple[BatchSplit, ...]:
        """Fill the buckets with this rank's part of the gradient; on lack of memory, again in smaller pieces."""
        self._buckets.clear()
        cut = [self._splitter.cut(batch) for batch in update.batches]
        while (failed := self._try(cut, update=update, step=step)) is not None:
            self._splitter.learn(failed)
            torch.cuda.empty_cache()
            # Other ranks wait in their sums meanwhile: buckets that this one sent already are not touched.
            self._buckets.restart()
            cut = [self._splitter.cut(batch) for batch in update.batches]
        return tuple(
            BatchSplit(step=step, target_tokens=batch.target_tokens, pieces=len(pieces))
            for batch, pieces in zip(update.batches, cut, strict=True)
            if len(pieces) > 1
        )

    def _try(
        self, cut: Sequence[Sequence[Batch[Tensor]]], *, update: UpdateBatches, step: int, sends: bool = True
    ) -> Batch[Tensor] | None:
        """Learn from all pieces; the one that memory did not suffice for, or None."""
        factor = self._precision.scale / update.target_tokens
        places = [(micro, piece) for micro, pieces in enumerate(cut) for piece in range(len(pieces))]
        for micro, piece in places:
            seed = derived_seed(self._seed, "dropout", step, self._world.rank, micro, piece)
            last = sends and (micro, piece) == places[-1]
            try:
                loss, nll = self._learn(cut[micro][piece], seed=seed, factor=factor, last=last)
            except torch.OutOfMemoryError:
                return cut[micro][piece]
            self._buckets.slots[_LOSS] += loss
            self._buckets.slots[_NLL] += nll
        return None

    def _fill_slots(self, asked: Asked, *, step: int, splits: int) -> None:
        numbers: dict[int, float] = dict(enumerate((splits, *asked.numbers()), start=_SPLIT))
        if self._balancer is not None:
            numbers |= {SLOTS + slot: number for slot, number in self._balancer.report(step).items()}
        for slot, number in numbers.items():
            if number:
                self._buckets.slots[slot].fill_(number)

    def _apply(self, step: int, learning_rate: float) -> Tensor:
        scale = self._precision.scale
        applied = self._optimizer.step(step=step, learning_rate=learning_rate, scale=scale)
        if self._exchanger is not None:
            self._exchanger.commit(applied.skipped)
        numbers = torch.cat([self._buckets.slots, torch.stack([applied.norm, applied.skipped, scale])])
        self._precision.update(applied.skipped)
        return numbers


def _mark(device: torch.device) -> torch.cuda.Event | None:
    """The moment when all that was queued is done; on a CPU it is now."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return event
