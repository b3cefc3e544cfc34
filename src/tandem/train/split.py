"""Batches cut in halves, until they fit into memory."""

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch, PackedBatch, PaddedBatch
from tandem.data.batches.tiles import build_tiles
from tandem.errors import TandemError

__all__ = ["Splitter", "halve"]


class Splitter:
    """Remembers what was too large, so that nothing of that size is tried again."""

    def __init__(self) -> None:
        self._too_large = float("inf")

    def cut(self, batch: Batch[Tensor]) -> list[Batch[Tensor]]:
        """The batch, or pieces of it that are smaller than all that failed so far."""
        if batch.pairs < 2 or _size(batch) < self._too_large:
            return [batch]
        first, second = halve(batch)
        return [*self.cut(first), *self.cut(second)]

    def learn(self, failed: Batch[Tensor]) -> None:
        """Note that memory did not suffice for this one; raises TandemError if it cannot be cut."""
        if failed.pairs < 2:
            raise TandemError(
                f"A single pair in a batch of {failed.source.numel()} source and {failed.labels.numel()} target "
                "tokens does not fit into memory: make the model smaller, or prepare the data with fewer pieces a "
                "sentence."
            )
        self._too_large = _size(failed)


def halve(batch: Batch[Tensor]) -> tuple[Batch[Tensor], Batch[Tensor]]:
    """The first and the second half of a batch's pairs, which must be two or more."""
    middle = batch.pairs // 2
    if isinstance(batch, PaddedBatch):
        return _rows(batch, 0, middle), _rows(batch, middle, batch.pairs)
    return _stretch(batch, 0, middle), _stretch(batch, middle, batch.pairs)


def _size(batch: Batch[Tensor]) -> int:
    """Places that memory is needed for, padding included."""
    return batch.source.numel() + batch.labels.numel()


def _rows(batch: PaddedBatch[Tensor], start: int, stop: int) -> PaddedBatch[Tensor]:
    source_lengths, target_lengths = batch.source_lengths[start:stop], batch.target_lengths[start:stop]
    source_width, target_width = int(source_lengths.max()), int(target_lengths.max())
    return PaddedBatch(
        source=batch.source[start:stop, :source_width],
        source_lengths=source_lengths,
        decoder_input=batch.decoder_input[start:stop, :target_width],
        labels=batch.labels[start:stop, :target_width],
        target_lengths=target_lengths,
        pairs=stop - start,
        target_tokens=int(target_lengths.sum()),
    )


def _stretch(batch: PackedBatch[Tensor], start: int, stop: int) -> PackedBatch[Tensor]:
    source_bounds, target_bounds = (
        batch.source_bounds[start : stop + 1],
        batch.target_bounds[start : stop + 1],
    )
    device = batch.source.device
    source = slice(int(source_bounds[0]), int(source_bounds[-1]))
    target = slice(int(target_bounds[0]), int(target_bounds[-1]))
    tiles = build_tiles(
        source_bounds.diff().cpu().numpy(),
        target_bounds.diff().cpu().numpy(),
        source_places=source.stop - source.start,
        target_places=target.stop - target.start,
    )
    return PackedBatch(
        source=batch.source[source],
        source_positions=batch.source_positions[source],
        source_bounds=source_bounds - source_bounds[0],
        decoder_input=batch.decoder_input[target],
        labels=batch.labels[target],
        target_positions=batch.target_positions[target],
        target_bounds=target_bounds - target_bounds[0],
        source_tiles=torch.from_numpy(tiles.source_tiles).to(device),
        target_tiles=torch.from_numpy(tiles.target_tiles).to(device),
        tile_counts=torch.from_numpy(tiles.tile_counts).to(device),
        source_sentences=torch.from_numpy(tiles.source_sentences).to(device),
        target_sentences=torch.from_numpy(tiles.target_sentences).to(device),
        longest_source=batch.longest_source,
        longest_target=batch.longest_target,
        pairs=stop - start,
        target_tokens=target.stop - target.start,
    )
