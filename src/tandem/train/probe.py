"""What the exchange of gradients costs: now and then an update's batches are also done without it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tandem.parallel.world import World
from tandem.runlog.event import ExchangeProbed
from tandem.telemetry.clock import PhaseClock

__all__ = ["ExchangeProbe", "ProbedStep", "Wait"]

EARLY_STEPS = (20, 60, 180)
"""So that short runs know too; before the first of them, ranks warm up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Moments between which a rank waited for a step's gradients; to be read when the step is over."""

    clock: PhaseClock
    computed: Any
    """When backward had returned."""
    exchanged: Any
    """When the gradients were there."""

    @property
    def seconds(self) -> float:
        """From the one to the other."""
        return self.clock.seconds(self.computed, self.exchanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedStep:
    """Moments of a step and of its rehearsal; to be read when the step is over."""

    clock: PhaseClock
    rehearsed: tuple[Any, Any]
    begun: Any
    """When all ranks began the step itself."""
    exchanged: Any = None
    """When its gradients were there."""

    def read(self, step: int, *, exchange_s: float) -> ExchangeProbed:
        """The two times, and the wait for gradients in the step as its phases tell it."""
        return ExchangeProbed(
            step=step,
            synchronised_s=self.clock.seconds(self.begun, self.exchanged),
            unsynchronised_s=self.clock.seconds(*self.rehearsed),
            exchange_s=exchange_s,
        )


class ExchangeProbe:
    """Lets all ranks rehearse a step without exchange, at the same steps on each of them."""

    def __init__(self, world: World, *, clock: PhaseClock, every_steps: int | None) -> None:
        """Every so many steps, and some early ones; never for None, nor where there is nobody to exchange with."""
        self._world, self._clock, self._every_steps = world, clock, every_steps

    def is_due(self, step: int) -> bool:
        """Whether to rehearse this step."""
        if self._every_steps is None or self._world.size == 1:
            return False
        return step in EARLY_STEPS or step % self._every_steps == 0

    def rehearse(self, work: Callable[[], bool]) -> ProbedStep | None:
        """Do the work, which gives whether it came to its end, together with all ranks; None where one's did not.

        The ranks begin together, and leave together to begin the step itself. None of it is a part of the step.
        """
        with self._clock.aside():
            self._world.barrier()
            start = self._clock.stamp()
            is_done = work()
            stop = self._clock.stamp()
            failed = torch.tensor([float(not is_done)], device=self._world.device)
            self._world.sum(failed)
            is_failed = bool(failed > 0)
        if is_failed:
            return None
        return ProbedStep(clock=self._clock, rehearsed=(start, stop), begun=self._clock.stamp())
