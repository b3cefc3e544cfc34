"""What a rank needs of a GPU's memory, and the largest micro-batch that it leaves room for."""

from dataclasses import dataclass
from typing import Self

from tandem.config import Recipe
from tandem.estimate.activations import Kept, Way, kept_bytes, working_bytes
from tandem.estimate.parameters import count_parameters, vocabulary_of

__all__ = [
    "CONTEXT_BYTES",
    "MOST_TOKENS",
    "SPARE",
    "RankMemory",
    "checkpoint_bytes",
    "state_bytes",
    "way_for",
]

CONTEXT_BYTES = 600 * 2**20
"""Of the driver and the libraries, outside of what PyTorch counts."""
SPARE = 0.1
"""Of a GPU's memory, for workspaces of libraries, for evaluation, and because memory lies in pieces."""
MOST_TOKENS = 65_536
"""A side of a micro-batch: nothing is gained by larger ones, and kernels count elements in 32 bits."""

_MULTIPLE = 64
_LOGITS_BYTES = 2**30
"""Most of what the loss works on at a time; plain operations have that twice."""


def way_for(recipe: Recipe, *, fused: bool = True) -> Way:
    """How a GPU computes the recipe, if it can run fused kernels or cannot."""
    if recipe.train.precision in ("fp32", "tf32"):
        return "full"
    return "fused" if fused else "half"


def state_bytes(parameters: int, *, way: Way, averaged: bool, muon: bool = False) -> int:
    """Weights, gradients and two moments in fp32; where they are used, halves of weights and a running average.

    Muon has a copy of the moments, its directions in half precision, and while it finds them copies of matrices.
    """
    each = 4 + 4 + 8 + (2 if way == "fused" else 0) + (4 if averaged else 0) + (4 + 2 + 5 if muon else 0)
    return parameters * each


def checkpoint_bytes(parameters: int, *, averaged: bool) -> int:
    """Weights and two moments in fp32, and the running average; headers and the subword model not counted."""
    return parameters * (16 if averaged else 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Bytes on the GPU of one rank, by what they grow with."""

    state: int
    """Held from beginning to end."""
    weights: int
    """Copies of weights, and gradients of embeddings, that every pass makes anew."""
    kept: Kept
    """A token, until backward."""
    working: int
    """A target token, for a while in backward."""
    logits: int
    """A target token, for a while in the loss."""
    most_logits: int

    @classmethod
    def of(cls, recipe: Recipe, *, fused: bool = True) -> Self:
        """Of a recipe whose vocabulary is as large as it asks for."""
        model, vocabulary, way = recipe.model, vocabulary_of(recipe), way_for(recipe, fused=fused)
        parameters = count_parameters(model, source_vocabulary=vocabulary, target_vocabulary=vocabulary)
        table = vocabulary * model.width
        # Plain operations: autocast's halves of weights; of the output's gradient, the sum and the newest part.
        weights = {"fused": 0, "half": 2 * parameters + 8 * table, "full": 8 * table}[way]
        return cls(
            state=state_bytes(
                parameters,
                way=way,
                averaged=bool(recipe.optim.ema_decay),
                muon=recipe.optim.algorithm == "muon",
            ),
            weights=weights,
            kept=kept_bytes(model, way),
            working=working_bytes(model, way),
            logits=vocabulary * (2 if way == "fused" else 8),
            most_logits=_LOGITS_BYTES * (1 if way == "fused" else 2),
        )

    def pass_bytes(self, *, source_tokens: int, target_tokens: int) -> int:
        """The most that forward and backward of one micro-batch hold at a time, beside the state."""
        logits = min(self.logits * target_tokens, self.most_logits)
        kept = self.kept.source * source_tokens + self.kept.target * target_tokens
        return self.weights + kept + max(logits, self.working * target_tokens)

    def largest_tokens(self, room_bytes: float) -> int:
        """Tokens a side of the largest micro-batch whose pass needs no more; 0 where none does."""
        good, bad = 0, MOST_TOKENS // _MULTIPLE + 1
        while bad - good > 1:
            middle = (good + bad) // 2
            tokens = middle * _MULTIPLE
            fits = self.pass_bytes(source_tokens=tokens, target_tokens=tokens) <= room_bytes
            good, bad = (middle, bad) if fits else (good, middle)
        return good * _MULTIPLE

    def largest_on(self, gpu_bytes: float) -> int:
        """Tokens a side of the largest micro-batch that a GPU with so much memory surely holds; 0 where none."""
        return self.largest_tokens(self.room_bytes(gpu_bytes))

    def room_bytes(self, gpu_bytes: float) -> float:
        """What such a GPU leaves to a pass, after the reserve; below 0 where the state alone does not fit."""
        return gpu_bytes * (1 - SPARE) - CONTEXT_BYTES - self.state
