"""What changes when a run learns: weights, moments and loss scale, built, saved and restored together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from tandem.checkpoint.restore import Restored
from tandem.config import Recipe
from tandem.data.subword.learn import Subword
from tandem.model import Transformer, build_model
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import World
from tandem.train.optim import Optimizer
from tandem.train.precision import Precision
from tandem.train.seeds import derived_seed
from tandem.train.step import SLOTS, count_slots

__all__ = ["Learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A model on its device with all that is needed to change it."""

    model: Transformer
    buckets: GradientBuckets
    optimizer: Optimizer
    precision: Precision

    @classmethod
    def build(cls, recipe: Recipe, subword: Subword, world: World) -> Self:
        """With its first weights, which follow from the recipe's seed."""
        model = build_model(
            recipe.model,
            source_vocabulary=subword.vocabulary,
            target_vocabulary=subword.vocabulary,
            pad=subword.target.special.pad,
            seed=derived_seed(recipe.seed, "weights"),
        ).to(world.device)
        slots = count_slots(world) if recipe.batch.shares == "auto" else SLOTS
        buckets = GradientBuckets(list(model.parameters()), world, slots=slots)
        return cls(
            model=model,
            buckets=buckets,
            optimizer=Optimizer(model, recipe.optim, buckets),
            precision=Precision(recipe.train.precision, world.device),
        )

    def weights(self) -> Mapping[str, Tensor]:
        """The weights that translate; not copies."""
        return self.optimizer.weights_for_translation()

    def rest(self) -> Mapping[str, Tensor]:
        """All else that the next step needs; not copies."""
        return {**self.optimizer.state_tensors(), **self.precision.state_tensors()}

    def restore(self, restored: Restored | None, world: World, *, source: int = 0) -> None:
        """Go on from a checkpoint that one rank has read: the others, on any host, get it from there."""
        if restored is not None:
            self.optimizer.load(restored.optimizer, weights=restored.model)
            self.precision.load(restored.optimizer)
        weights, rest = self.weights(), self.rest()
        for tensor in (*weights.values(), *rest.values()):
            world.share(tensor, source)
        if restored is None:
            self.optimizer.load(rest, weights=weights)
