"""Where in its sentence a token stands: sinusoids added to embeddings, or rotations of queries and keys."""

# Shapes: X any leading shape, D width of the model, H heads, K width of a head.

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Positions", "build_positions"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Positions:
    """The places of one batch, made once for all layers; each kind leaves undone what the other one does."""

    sinusoids_XD: Tensor | None = None
    cosines_X1K: Tensor | None = None
    sines_X1K: Tensor | None = None

    def add_to(self, embedded_XD: Tensor) -> Tensor:
        """Embeddings that know their place, where places are added."""
        if self.sinusoids_XD is None:
            return embedded_XD
        return embedded_XD + self.sinusoids_XD.to(embedded_XD.dtype)

    def rotate(self, heads_XHK: Tensor) -> Tensor:
        """Queries or keys that know their place, where places are rotations."""
        if self.cosines_X1K is None or self.sines_X1K is None:
            return heads_XHK
        first, second = heads_XHK.chunk(2, dim=-1)
        turned_XHK = torch.cat((-second, first), dim=-1)
        return (heads_XHK * self.cosines_X1K + turned_XHK * self.sines_X1K).to(heads_XHK.dtype)

    def at(self, place: int | Tensor) -> "Positions":
        """One place of those that these positions were made for; a tensor [1] has it on the device."""
        if self.sinusoids_XD is not None:
            return Positions(sinusoids_XD=self.sinusoids_XD[place])
        if self.cosines_X1K is None or self.sines_X1K is None:
            return self
        return Positions(cosines_X1K=self.cosines_X1K[place], sines_X1K=self.sines_X1K[place])


def build_positions(
    kind: Literal["sinusoidal", "rotary"], places_X: Tensor, *, width: int, heads: int
) -> Positions:
    """Positions of tokens at these places; there is no table and so no longest sentence."""
    if kind == "sinusoidal":
        # As in tensor2tensor and fairseq: all sines, then all cosines, wavelengths from 2π to 10,000 · 2π.
        angles_XD = _angles(places_X, width // 2, steps=max(width // 2 - 1, 1))
        waves_XD = torch.cat((angles_XD.sin(), angles_XD.cos()), dim=-1)
        return Positions(sinusoids_XD=functional.pad(waves_XD, (0, width % 2)))
    # As in Llama (not interleaved): the first half of a head turns with the second.
    half = width // heads // 2
    angles_X1K = _angles(places_X, half, steps=half).unsqueeze(-2)
    angles_X1K = torch.cat((angles_X1K, angles_X1K), dim=-1)
    return Positions(cosines_X1K=angles_X1K.cos(), sines_X1K=angles_X1K.sin())


def _angles(places_X: Tensor, count: int, *, steps: int) -> Tensor:
    exponents = torch.arange(count, device=places_X.device, dtype=torch.float32) / steps
    return places_X.float().unsqueeze(-1) * torch.exp(exponents * -math.log(10_000.0))
