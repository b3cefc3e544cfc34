"""A made-up text with the lengths of real translation data, prepared by `tandem data prepare` into real shards."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TANDEM", "Synthetic", "draw_lengths", "prepare_corpus", "recipe_for", "write_text"]

TANDEM = [sys.executable, "-m", "tandem"]

_MARKS = 4
"""Ids of a vocabulary that stand for no text."""
_PORTION_PAIRS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """What the text is like; the defaults are those of WMT English to German in 32,000 joint pieces."""

    pairs: int = 1_000_000
    vocabulary: int = 32_000
    source_tokens: float = 27.0
    """On average, with the end mark."""
    target_tokens: float = 28.7
    spread: float = 0.55
    """Standard deviation of the logarithm of a length."""
    correlation: float = 0.9
    """Of the logarithms of a pair's lengths."""
    longest: int = 249
    """Most pieces of a sentence."""
    seed: int = 1


def draw_lengths(text: Synthetic, dice: np.random.Generator, pairs: int) -> list[NDArray[np.int64]]:
    """Draw the pieces of source and target sentences, end marks not counted: log-normal, and alike within a pair."""
    along, across = dice.standard_normal((2, pairs))
    other = text.correlation * along + np.sqrt(1 - text.correlation**2) * across
    sides = (text.source_tokens, along), (text.target_tokens, other)
    drawn = []
    for mean, normal in sides:
        middle = np.log(mean - 1) - text.spread**2 / 2
        lengths = np.rint(np.exp(middle + text.spread * normal)).astype(np.int64)
        drawn.append(np.clip(lengths, 1, text.longest))
    return drawn


def write_text(text: Synthetic, folder: Path) -> None:
    """Write `train.en` and `train.de`: pieces parted by spaces, as frequent as words are (Zipf's law)."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "train.en", folder / "train.de"]
    beside = [file.with_suffix(".partial" + file.suffix) for file in files]
    dice = np.random.default_rng(text.seed)
    count = text.vocabulary - _MARKS
    pieces = [f"p{number}" for number in range(count)]
    share = np.cumsum(1 / np.arange(1, count + 1))
    share /= share[-1]
    with beside[0].open("w") as source, beside[1].open("w") as target:
        for start in range(0, text.pairs, _PORTION_PAIRS):
            pairs = min(_PORTION_PAIRS, text.pairs - start)
            for file, lengths in zip((source, target), draw_lengths(text, dice, pairs), strict=True):
                ids = np.searchsorted(share, dice.random(int(lengths.sum())))
                file.writelines(_lines(pieces, ids.tolist(), lengths.tolist()))
    for written, name in zip(beside, files, strict=True):
        written.replace(name)


def _lines(pieces: list[str], ids: list[int], lengths: list[int]) -> Iterator[str]:
    start = 0
    for length in lengths:
        yield " ".join([pieces[number] for number in ids[start : start + length]]) + "\n"
        start += length


def recipe_for(text: Synthetic, *, preset: str, target_tokens: int) -> dict[str, Any]:
    """Return a recipe that takes the text as it is; it is to lie beside the text."""
    return {
        "name": f"synthetic-{preset}",
        "data": {"train": [{"source": "train.en", "target": "train.de"}], "folder": "prepared"},
        "clean": {
            "unicode_nfc": False,
            "strip_control": False,
            "markup": False,
            "max_words": text.longest,
            "max_ratio": float(text.longest),
            "drop_identical": False,
            "drop_duplicates": False,
        },
        "subword": {"kind": "segmented", "vocabulary": text.vocabulary, "max_pieces": text.longest},
        "batch": {"target_tokens": target_tokens},
        "model": {"preset": preset, "dropout": 0.1},
        "optim": {"warmup_steps": 1000},
        "evaluate": {"every_steps": None},
    }


def prepare_corpus(text: Synthetic, folder: Path, *, presets: list[str], target_tokens: int) -> list[Path]:
    """Write the text and one recipe a preset, and prepare the shards, unless they are there; returns the recipes."""
    if not (folder / "train.de").exists():
        write_text(text, folder)
    recipes = []
    for preset in presets:
        recipe = folder / f"{preset}.yaml"
        recipe.write_text(json.dumps(recipe_for(text, preset=preset, target_tokens=target_tokens)))
        # Shards do not depend on the model: the second time, there is nothing left to do.
        subprocess.run([*TANDEM, "data", "prepare", recipe], check=True)
        recipes.append(recipe)
    return recipes
