"""Small text of our own for preparing, and the recipe that goes with it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandem.config import Recipe
from tandem.data.corpus.builtin import builtin_pairs

Pairs = list[tuple[str, str]]
BuildRecipe = Callable[..., Recipe]


@pytest.fixture(scope="session")
def pairs() -> Pairs:
    """Pairs that share no sentence, whatever the case: so none is dropped."""
    seen: set[str] = set()
    chosen = []
    for source, target in builtin_pairs(seed=5, split="train", count=2_000):
        keys = {source.casefold(), target.casefold()}
        if not keys & seen:
            chosen.append((source, target))
        seen |= keys
    return chosen[:1_500]


@pytest.fixture
def build_recipe(tmp_path: Path, pairs: Pairs) -> BuildRecipe:
    """A recipe over two corpora and two held-out sets in `tmp_path`; sections can be changed by name."""
    sets = {
        "first": pairs[:1_000],
        "second": pairs[1_000:1_400],
        "valid": pairs[1_400:1_450],
        "test": pairs[1_450:],
    }
    for name, chosen in sets.items():
        for ending, side in (("en", 0), ("de", 1)):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (tmp_path / f"{name}.{ending}").write_text(text, encoding="utf-8")

    def files(name: str) -> dict[str, Any]:
        return {"source": str(tmp_path / f"{name}.en"), "target": str(tmp_path / f"{name}.de")}

    def build(**sections: dict[str, Any]) -> Recipe:
        data = {
            "folder": str(tmp_path / "prepared"),
            "train": [files("first"), files("second")],
            "valid": files("valid"),
            "test": [files("test")],
        }
        recipe = {
            "name": "small",
            "data": data | sections.pop("data", {}),
            "subword": {"vocabulary": 600, "max_pieces": 64} | sections.pop("subword", {}),
            "batch": {"target_tokens": 512},
        }
        return Recipe.model_validate(recipe | sections)

    return build
