"""What a recipe will ask of hosts and links: bytes of gradients, of disk, of memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tandem.config import ModelSection, Recipe
from tandem.config.subword import SubwordSection
from tandem.estimate.flops import WMT_LENGTHS, training_flops
from tandem.estimate.memory import RankMemory, checkpoint_bytes
from tandem.estimate.parameters import count_parameters, vocabulary_of
from tandem.files import tree_bytes

__all__ = ["Needs"]

_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Of one run."""

    of_what: str
    """For a person."""
    gradient_bytes: int
    checkpoint_bytes: int
    disk_bytes: int
    """Of all checkpoints that are kept, the one being written, and the data."""
    memory: tuple[RankMemory, RankMemory] | None = None
    """On a GPU with fused kernels, and without; None where nothing says how large a batch is."""
    update_tokens: int = 0
    longest_tokens: int = 0
    """A side of the longest sentence."""
    step_flops: float = 0.0
    """Operations of a step over all ranks; 0 where nothing says how large a batch is."""
    mode: str = "exact"
    """In which gradients are to be exchanged; may be `auto`."""
    is_half: bool = False
    """Whether GPUs multiply in 16 bits, as their speed is measured in."""
    tail_share: float = 0.0
    """Of gradients: those of the source's embedding, which is the last to be complete."""
    checkpoint_steps: int = 0
    """Steps from one checkpoint to the next; 0 where they are written by time alone, or nothing says."""

    @classmethod
    def of(cls, recipe: Recipe | None) -> Self:
        """Of a recipe, or of the base model where there is none."""
        if recipe is None:
            model, pieces = ModelSection(), SubwordSection().vocabulary
            parameters = count_parameters(model, source_vocabulary=pieces, target_vocabulary=pieces)
            saved = checkpoint_bytes(parameters, averaged=False)
            return cls(
                of_what="the base model",
                gradient_bytes=parameters * _NUMBER_BYTES,
                checkpoint_bytes=saved,
                disk_bytes=2 * saved,
            )
        pieces = vocabulary_of(recipe)
        parameters = count_parameters(recipe.model, source_vocabulary=pieces, target_vocabulary=pieces)
        saved = checkpoint_bytes(parameters, averaged=bool(recipe.optim.ema_decay))
        keep = recipe.checkpoint
        # The best by loss and the best by BLEU may all be different ones.
        kept = keep.keep_last + (2 * keep.keep_best if recipe.is_evaluated else 0) + 1
        return cls(
            of_what=recipe.name,
            gradient_bytes=parameters * _NUMBER_BYTES,
            checkpoint_bytes=saved,
            disk_bytes=kept * saved + _bytes_below(recipe.prepared_folder),
            memory=(RankMemory.of(recipe), RankMemory.of(recipe, fused=False)),
            update_tokens=recipe.batch.target_tokens,
            longest_tokens=recipe.subword.max_pieces + 1,
            step_flops=recipe.batch.target_tokens
            * training_flops(recipe.model, vocabulary=pieces, lengths=WMT_LENGTHS),
            mode=recipe.exchange.mode,
            is_half=recipe.train.precision not in {"fp32", "tf32"},
            tail_share=pieces * recipe.model.width / parameters,
            checkpoint_steps=_checkpoint_steps(recipe),
        )


def _checkpoint_steps(recipe: Recipe) -> int:
    evaluated = recipe.evaluate.every_steps if recipe.is_evaluated else None
    return min((every for every in (recipe.checkpoint.every_steps, evaluated) if every), default=0)


def _bytes_below(folder: Path) -> int:
    """0 where the data is not prepared yet: nobody knows then."""
    return tree_bytes(folder)
