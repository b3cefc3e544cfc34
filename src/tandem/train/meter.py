"""Reads what steps came to, a little late so that nothing waits, and writes it down."""

import math
from collections import deque

import torch

from tandem.runlog.event import StepFinished
from tandem.runlog.writer import RunLog
from tandem.telemetry.clock import PhaseClock
from tandem.train.asked import Asked
from tandem.train.balancer import Balancer
from tandem.train.precision import SkipWatch
from tandem.train.run_exchange import RunExchange
from tandem.train.step import StepResult

__all__ = ["Meter"]

_LAG_STEPS = {"cpu": 0, "cuda": 2}
"""Steps that a device may be behind the host; the same on all ranks, since decisions hang on what is read."""


class Meter:
    """The last steps' results, until they are read."""

    def __init__(
        self,
        log: RunLog,
        clock: PhaseClock,
        *,
        device: torch.device,
        balancer: Balancer | None = None,
        exchange: RunExchange | None = None,
    ) -> None:
        self._log, self._clock, self._lag = log, clock, _LAG_STEPS[device.type]
        self._balancer, self._exchange = balancer, exchange
        self._ahead: deque[tuple[int, StepResult]] = deque()
        self._watch = SkipWatch()

    def add(self, result: StepResult, *, epoch: int) -> Asked:
        """Take a step's result; returns what was asked for in the step that is read now, if one is."""
        self._ahead.append((epoch, result))
        return self._read(self._lag)

    def drain(self) -> Asked:
        """Read all that is left: everything up to the last step is then known."""
        return self._read(0)

    def _read(self, leave: int) -> Asked:
        asked = Asked()
        while len(self._ahead) > leave:
            asked |= self._note(*self._ahead.popleft())
        return asked

    def _note(self, epoch: int, result: StepResult) -> Asked:
        numbers = result.read()
        measured = self._clock.read(result.step) or {}
        # Finer than a microsecond is noise, and its digits would be half of a long log.
        phases = {name: round(seconds, 6) for name, seconds in measured.items()}
        for split in result.splits:
            self._log.log(split)
        self._log.log(
            StepFinished(
                step=result.step,
                epoch=epoch,
                loss=numbers.loss_sum / result.target_tokens,
                nll=numbers.nll_sum / result.target_tokens,
                learning_rate=result.learning_rate,
                gradient_norm=numbers.gradient_norm,
                loss_scale=numbers.loss_scale,
                skipped=numbers.skipped,
                target_tokens=result.target_tokens,
                source_tokens=result.source_tokens,
                pairs=result.pairs,
                batches=result.batches,
                duration_s=round(sum(phases.values()), 6),
                phases=phases,
                split=len(result.splits),
                sent_bytes=result.sent_bytes,
            )
        )
        if result.probed is not None:
            self._log.log(result.probed.read(result.step, exchange_s=phases.get("exchange", math.nan)))
        if self._balancer is not None:
            self._balancer.note(result.step, phases, share=result.own_share)
            self._balancer.hear(result.step, numbers.speeds)
        if self._exchange is not None:
            self._exchange.residual_watch.note(step=result.step, skipped=numbers.skipped)
        self._watch.note(step=result.step, skipped=numbers.skipped, loss_scale=numbers.loss_scale)
        return numbers.asked
