"""Sketches of long vectors: a few sums with random signs, from which norms and angles can be told to some per cent.

Sketching is linear: what ranks sketch of their parts adds up to the sketch of the whole.
"""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["SKETCH", "Sketcher"]

SKETCH = 1024
"""Numbers of a sketch: norms are right to about 1 / sqrt(SKETCH / 2), which is 4 %."""
_ROWS = 1024
_PIECE = _ROWS * SKETCH
_SHIFTS = 4093
"""Pieces until signs come again."""


class Sketcher:
    """Draws the signs once, the same on every rank for the same seed."""

    def __init__(self, *, seed: int, device: torch.device) -> None:
        dice = torch.Generator().manual_seed(seed)
        # Two tables, of which the second is shifted from piece to piece: pieces that are alike get signs that are not.
        table = torch.randint(0, 2, (3 * _PIECE,), generator=dice, dtype=torch.int8)
        signs = (table * 2 - 1).to(device)
        self._signs, self._others = signs[:_PIECE], signs[_PIECE:]
        self._shifts: list[int] = torch.randint(0, _ROWS, (_SHIFTS,), generator=dice).tolist()

    def add(self, into: Tensor, values: Tensor, *, start: int = 0, factor: float | Tensor = 1.0) -> None:
        """Add the sketch of `values`, which lie from `start` on in a longer vector, times the factor."""
        stop = start + len(values)
        for number in range(start // _PIECE, -(-stop // _PIECE)):
            first = number * _PIECE
            begin, end = max(start, first), min(stop, first + _PIECE)
            shift = self._shifts[number % _SHIFTS] * SKETCH
            signs = self._signs[begin - first : end - first]
            others = self._others[shift + begin - first : shift + end - first]
            signed = values[begin - start : end - start] * (signs * others)
            rows = functional.pad(signed, (begin % SKETCH, -end % SKETCH)).view(-1, SKETCH)
            into += rows.sum(0) * factor
