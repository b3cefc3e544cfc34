"""Which checkpoints stay: the last ones, and the best by loss and by BLEU."""

from collections.abc import Sequence

from tandem.checkpoint.listing import CheckpointInfo, by_bleu, by_loss

__all__ = ["superfluous"]


def superfluous(infos: Sequence[CheckpointInfo], *, keep_last: int, keep_best: int) -> list[CheckpointInfo]:
    """The whole checkpoints that nothing keeps, the oldest first; `infos` has the newest last.

    The newest is always kept; damaged ones are neither counted nor given up, for nobody knows what they are worth.
    """
    whole = [info for info in infos if info.is_complete]
    kept = [*whole[-max(1, keep_last) :], *by_loss(whole)[:keep_best], *by_bleu(whole)[:keep_best]]
    return [info for info in whole if info not in kept]
