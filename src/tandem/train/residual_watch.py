"""Residuals that are no numbers any more: every step would be skipped for ever, so all ranks drop them together."""

from tandem.parallel.world import World
from tandem.runlog.event import ResidualsReset
from tandem.runlog.writer import RunLog
from tandem.train.exchanger import Exchanger

__all__ = ["SKIPPED_STEPS", "ResidualWatch"]

SKIPPED_STEPS = 3
"""Encoded steps skipped in a row after which residuals are looked at."""


class ResidualWatch:
    """Resets the residuals of all ranks where some are not finite; must hear of every step, in order, on every rank.

    A skipped step leaves residuals as they are, so faulty memory or an overflow in them would never go away.
    """

    def __init__(self, exchanger: Exchanger, world: World, log: RunLog) -> None:
        """The log of one rank is enough."""
        self._exchanger, self._world, self._log = exchanger, world, log
        self._in_a_row = 0

    def note(self, *, step: int, skipped: bool) -> None:
        """Count a step; no bucket may be on its way."""
        coded = self._exchanger.coded
        if coded is None or not skipped or not self._exchanger.is_encoded(step):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        if self._in_a_row % SKIPPED_STEPS:
            return
        residuals = coded.residuals.values()
        finite = self._world.gather(all(residual.is_finite() for residual in residuals))
        if all(finite):
            return
        for residual in residuals:
            residual.reset()
        ranks = tuple(rank for rank, is_finite in enumerate(finite) if not is_finite)
        self._log.log(ResidualsReset(step=step, skipped=self._in_a_row, ranks=ranks))
