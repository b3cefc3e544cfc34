"""How near a coded exchange came to the exact sum of a step's gradients, and whether anything was lost on the way.

What ranks decode must be the sum of their gradients and of what they still owed, less what they owe now. All of these
are sketched, so that the check costs a pass over the gradients and a small sum over ranks, and no exact exchange.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tandem.parallel.residual import Residual
from tandem.parallel.shares import Owned
from tandem.parallel.sketch import SKETCH, Sketcher
from tandem.parallel.world import World

__all__ = ["Agreement", "AgreementCheck"]

_EXACT, _OWED, _OWES = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Shares of the norm of the exact gradient, as sketches tell them: to about 4 %."""

    error: float
    """Of the difference between what was decoded and the exact gradient."""
    cosine: float
    """Of the angle between the two."""
    owed: float
    """Of what encoding has left for the steps to come."""
    lost: float
    """Of what is neither in the decoded gradient nor left for later; of the bucket where it is largest."""
    bucket: int
    """That one, counted from 0."""


class AgreementCheck:
    """Gathers the sketches of one step, bucket by bucket, in the threads of the exchange."""

    def __init__(self, sketcher: Sketcher, *, buckets: int, device: torch.device) -> None:
        self._sketcher = sketcher
        self._told = torch.zeros(buckets, 3, SKETCH, device=device)
        self._decoded = torch.zeros(buckets, SKETCH, device=device)

    def note_gradients(self, bucket: int, values: Tensor, *, unscale: float | Tensor) -> None:
        """Of this rank, before anything is done with them."""
        self._sketcher.add(self._told[bucket, _EXACT], values, factor=unscale)

    def note_residuals(self, bucket: int, owned: Owned, residuals: Mapping[str, Residual]) -> None:
        """Of this rank, once the bucket's numbers are all encoded."""
        for name, residual in residuals.items():
            (start, _), inside = owned.ranges(name)
            for row, tensor in ((_OWED, residual.current), (_OWES, residual.pending)):
                self._sketcher.add(self._told[bucket, row], tensor[slice(*inside)], start=start)

    def note_decoded(self, bucket: int, values: Tensor) -> None:
        """What every rank has in place of its gradients, without a loss scale."""
        self._sketcher.add(self._decoded[bucket], values)

    def result(self, world: World) -> Agreement:
        """The same on every rank; all of them must ask."""
        world.sum(self._told)
        exact, owed, owes = self._told.double().unbind(1)
        decoded = self._decoded.double()
        lost = (decoded + owes - owed - exact).norm(dim=1)
        scale = torch.stack([exact.norm(dim=1), owed.norm(dim=1), decoded.norm(dim=1)]).amax(0)
        shares = torch.where(scale > 0, lost / scale, lost)
        whole, found = exact.norm(), decoded.norm()
        numbers = torch.stack(
            [
                _share((decoded - exact).norm(), whole),
                _share(whole * found - (exact * decoded).sum(), whole * found),
                _share(owes.norm(), whole),
                shares.max(),
                shares.argmax().double(),
            ]
        )
        # Ranks round differently where their devices differ, and must not come to different ends.
        world.largest(numbers)
        error, apart, left, most, bucket = _plain(numbers)
        return Agreement(error=error, cosine=1 - apart, owed=left, lost=most, bucket=round(bucket))


def _share(part: Tensor, whole: Tensor) -> Tensor:
    """Nothing is no share of nothing: gradients that are all zero are exact."""
    return torch.where(part == 0, torch.zeros_like(part), part / whole)


def _plain(numbers: Tensor) -> Sequence[float]:
    held: list[float] = numbers.nan_to_num(nan=torch.inf, posinf=torch.inf).tolist()
    return held
