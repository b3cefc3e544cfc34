"""The made-up text has the lengths that it promises, and becomes real shards."""

from pathlib import Path

import numpy as np
from benchmarks.gpu.corpus import Synthetic, draw_lengths, recipe_for, write_text

from tandem.config import Recipe


def test_lengths_have_the_means_that_were_asked_for_and_are_alike_within_a_pair() -> None:
    source, target = draw_lengths(Synthetic(), np.random.default_rng(3), 200_000)
    assert abs(source.mean() + 1 - 27.0) < 0.2
    assert abs(target.mean() + 1 - 28.7) < 0.2
    assert 200 <= max(source.max(), target.max()) <= 249
    assert source.min() >= 1
    assert 0.87 < np.corrcoef(np.log(source), np.log(target))[0, 1] < 0.92


def test_the_text_has_as_many_lines_as_pairs_and_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    text = Synthetic(pairs=300, vocabulary=100)
    for name in ("one", "two"):
        write_text(text, tmp_path / name)
    source, target = ((tmp_path / "one" / f"train.{side}").read_text() for side in ("en", "de"))
    assert source.count("\n") == target.count("\n") == 300
    assert all(line.split() for line in (source + target).splitlines())
    assert source == (tmp_path / "two" / "train.en").read_text()
    write_text(Synthetic(pairs=300, vocabulary=100, seed=2), tmp_path / "three")
    assert source != (tmp_path / "three" / "train.en").read_text()


def test_frequent_pieces_are_as_frequent_as_words(tmp_path: Path) -> None:
    write_text(Synthetic(pairs=2000, vocabulary=1004), tmp_path)
    words = (tmp_path / "train.de").read_text().split()
    first, tenth = (words.count(piece) for piece in ("p0", "p9"))
    assert 8 < first / tenth < 12.5


def test_the_recipe_is_one_and_keeps_every_pair() -> None:
    recipe = Recipe.model_validate(recipe_for(Synthetic(), preset="big", target_tokens=32_768))
    assert (recipe.model.width, recipe.model.dropout) == (1024, 0.1)
    assert (recipe.clean.max_words, recipe.subword.max_pieces) == (249, 249)
    assert recipe.clean.drop_duplicates is False
