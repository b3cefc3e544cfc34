"""What is wanted of a translation: how to search, and what to tell besides the text."""

from dataclasses import dataclass, field

from tandem.config import Recipe
from tandem.translate.penalty import LengthPenalty

__all__ = ["Sampling", "Wish", "recipe_wish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Draw each piece by its probability instead of searching for the best."""

    temperature: float = 1.0
    """Below 1 likely pieces get likelier."""
    top: int = 0
    """Only so many of the likeliest pieces are drawn from; 0: all."""
    seed: int = 0
    """The same seed, model and sentence give the same translation, whatever is translated beside it."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn from."""
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"the temperature is {self.temperature}, but must be above 0")
        if self.top < 0:
            raise ValueError(f"top is {self.top}, but must be 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to search, and what to tell; the same for all sentences of a call."""

    beam: int = 4
    best: int = 1
    """Translations of each sentence, at most; the beam is at least as wide. With sampling, how many are drawn."""
    penalty: LengthPenalty = field(default_factory=LengthPenalty)
    sampling: Sampling | None = None
    """None: search."""
    token_scores: bool = False
    """Tell the log-probability of each piece."""
    alignment: bool = False
    """Tell which source piece each target piece looked at most."""

    def __post_init__(self) -> None:
        """Refuse a search that could not find what is asked for."""
        if self.sampling is None and not 1 <= self.best <= self.beam:
            raise ValueError(f"a beam of {self.beam} cannot give the {self.best} best translations")
        if self.best < 1:
            raise ValueError(f"best is {self.best}, but must be 1 or more")


def recipe_wish(recipe: Recipe) -> Wish:
    """How a recipe's evaluations search."""
    return Wish(beam=recipe.evaluate.beam, penalty=LengthPenalty(alpha=recipe.evaluate.length_penalty))
