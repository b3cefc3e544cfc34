"""A guard over encoded gradients: it looks at a step now and then, and says when the mode does harm."""

import time

import torch

from tandem.config import ExchangeSection
from tandem.parallel.agreement import Agreement, AgreementCheck
from tandem.parallel.sketch import Sketcher
from tandem.parallel.world import World
from tandem.runlog.event import ExchangeChecked

__all__ = ["MOST_LOST", "ExchangeGuard"]

MOST_LOST = 0.02
"""Share of a bucket's gradients that may be gone: rounding and the sketch leave less than a hundredth of that."""
_IN_A_ROW = 2
"""Checks that must find gradients too far off: after one step whose gradient is small, what is owed looks large."""


class ExchangeGuard:
    """Every rank must make the same calls, and comes to the same end."""

    def __init__(self, section: ExchangeSection, world: World, *, buckets: int, seed: int) -> None:
        self._section, self._world, self._buckets, self._seed = section, world, buckets, seed
        self._sketcher: Sketcher | None = None
        self._check: AgreementCheck | None = None
        self.far = 0
        """Checks in a row, up to the last one, that found gradients too far off."""

    def resume(self, far: object) -> None:
        """Go on from what a checkpoint says of `far`."""
        self.far = far if isinstance(far, int) and 0 <= far < _IN_A_ROW else 0

    def watch(self, step: int) -> AgreementCheck | None:
        """The check of a step that is to be looked at; None for all others."""
        every = self._section.check_steps
        self._check = None
        if every is not None and step % every == 0:
            if self._sketcher is None:
                self._sketcher = Sketcher(seed=self._seed, device=self._world.device)
            self._check = AgreementCheck(self._sketcher, buckets=self._buckets, device=self._world.device)
        return self._check

    def judge(self, step: int, *, mode: str, skipped: torch.Tensor) -> ExchangeChecked | None:
        """What was found at a step that was looked at; nothing at others, or where the step changed nothing."""
        if self._check is None or bool(skipped > 0):
            return None
        begun = time.perf_counter()
        found = self._check.result(self._world)
        self._check = None
        is_lost = found.lost > MOST_LOST
        self.far = self.far + 1 if self._is_far(found) else 0
        return ExchangeChecked(
            step=step,
            mode=mode,
            error=found.error,
            cosine=found.cosine,
            owed=found.owed,
            lost=found.lost,
            bucket=found.bucket,
            is_good=not is_lost and self.far < _IN_A_ROW,
            duration_s=time.perf_counter() - begun,
        )

    def forget(self) -> None:
        """Begin anew, with another mode."""
        self.far = 0

    def _is_far(self, found: Agreement) -> bool:
        return found.error > self._section.most_error
