"""Where the stages of prepared data lie, and how to open them."""

from dataclasses import dataclass
from pathlib import Path

from tandem.config import Recipe, load_recipe
from tandem.data.batches.plan import UpdatePlan
from tandem.data.corpus.cleaned import Cleaned, open_cleaned
from tandem.data.corpus.held_out import HeldOutSet, open_held_out
from tandem.data.shards.shardset import ShardSet, open_shards
from tandem.data.subword.learn import Subword, open_subword
from tandem.errors import TandemError
from tandem.runlog.card import DataCard, read_card

__all__ = ["Prepared", "open_prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A folder of prepared data: one folder a stage, the recipe it was made from, and its data card."""

    folder: Path
    recipe: Recipe

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.folder / "recipe.yaml"

    @property
    def card_file(self) -> Path:
        """The data card as JSON."""
        return self.folder / "card.json"

    @property
    def clean_folder(self) -> Path:
        """Clean training pairs as text."""
        return self.folder / "clean"

    @property
    def subword_folder(self) -> Path:
        """The subword model."""
        return self.folder / "subword"

    @property
    def train_folder(self) -> Path:
        """Shards of the training pairs."""
        return self.folder / "train"

    @property
    def held_out_names(self) -> list[str]:
        """The valid set as `valid`, each test set as `test-NAME`."""
        data = self.recipe.data
        valid = ["valid"] if data.valid is not None else []
        return valid + [f"test-{corpus.label}" for corpus in data.test]

    def held_out_folder(self, name: str) -> Path:
        """Shards of a held-out set."""
        return self.folder / "held-out" / name / "shards"

    def held_out_text_folder(self, name: str) -> Path:
        """A held-out set as text, as its files have it."""
        return self.folder / "held-out" / name / "text"

    def cleaned(self) -> Cleaned:
        """Open the clean pairs."""
        return open_cleaned(self.clean_folder)

    def subword(self) -> Subword:
        """Open the subword model."""
        return open_subword(self.subword_folder)

    def train(self) -> ShardSet:
        """Open the training shards."""
        return open_shards(self.train_folder)

    def held_out(self, name: str) -> ShardSet:
        """Open the shards of a held-out set."""
        return open_shards(self.held_out_folder(name))

    def held_out_text(self, name: str) -> HeldOutSet:
        """Open the text of a held-out set."""
        return open_held_out(self.held_out_text_folder(name))

    def plan(self) -> UpdatePlan:
        """The recipe's update plan over the training shards."""
        weights = [corpus.weight for corpus in self.recipe.data.train]
        batch = self.recipe.batch
        return UpdatePlan(
            self.train(), target_tokens=batch.target_tokens, seed=self.recipe.seed, weights=weights
        )

    def card(self) -> DataCard:
        """Read the data card."""
        return read_card(self.card_file)


def open_prepared(folder: Path) -> Prepared:
    """Open a folder that `tandem data prepare` made."""
    recipe_file = folder / "recipe.yaml"
    if not recipe_file.is_file() or not (folder / "card.json").is_file():
        raise TandemError(f"{folder} holds no finished data: make it with tandem data prepare RECIPE.")
    return Prepared(folder=folder, recipe=load_recipe(recipe_file).recipe)
