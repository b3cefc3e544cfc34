"""Padded batches as a careful engineer would make them for plain torch: alike in length, so that padding is small."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tandem.data.batches.fill import build_padded
from tandem.data.shards.shardset import ShardSet

__all__ = ["Rectangles", "choose_pairs", "load_rectangles"]

POOL_BATCHES = 100
"""Batches whose pairs are sorted by length together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rectangles:
    """A batch on the device; ids are int64, P pairs of at most S and T tokens."""

    source: Tensor
    """[P, S]"""
    is_padding: Tensor
    """[P, S]"""
    decoder_input: Tensor
    """[P, T]"""
    labels: Tensor
    """[P, T]"""
    target_tokens: int
    """Real ones."""
    source_tokens: int


def choose_pairs(
    source_tokens: NDArray[np.int64],
    target_tokens: NDArray[np.int64],
    *,
    tokens: int,
    dice: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """Draw a pool of pairs, sort it by the longer side, and cut it into batches of about `tokens` target tokens."""
    order = dice.permutation(len(target_tokens))
    pool = order[np.cumsum(target_tokens[order]) <= POOL_BATCHES * tokens]
    source, target = source_tokens[pool], target_tokens[pool]
    # By the target alone, a long source among a thousand would pad almost half of that side.
    pool = pool[np.lexsort((source + target, np.maximum(source, target)))]
    number = (np.cumsum(target_tokens[pool]) - 1) // tokens
    batches = np.split(pool, np.flatnonzero(np.diff(number)) + 1)
    if len(batches) > 1:
        # What is left over at the end of a pool is a small batch, and would count as a slow one.
        batches.pop()
    return [batches[place] for place in dice.permutation(len(batches))]


def load_rectangles(
    shards: ShardSet, chosen: Sequence[NDArray[np.int64]], device: torch.device
) -> list[Rectangles]:
    """Build the batches and bring them to the device."""
    loaded = []
    for pairs in chosen:
        source, target = shards.gather(pairs)
        built = build_padded(source, target, special=shards.special)
        batch = built.map(lambda array: torch.from_numpy(array).long().to(device))
        loaded.append(
            Rectangles(
                source=batch.source,
                is_padding=batch.source == shards.special.pad,
                decoder_input=batch.decoder_input,
                labels=batch.labels,
                target_tokens=batch.target_tokens,
                source_tokens=len(source.ids) + len(source),
            )
        )
    return loaded
