"""The sentences that an export is tried on."""

from pathlib import Path

import pytest
from tests.unit.translate.small_model import write_subword

from tandem.artefact import building
from tandem.config import Recipe
from tandem.data.corpus.builtin import builtin_pairs
from tandem.data.subword.learn import Subword
from tandem.export.sample import SENTENCES, sample_sentences


@pytest.fixture(scope="module")
def subword(tmp_path_factory: pytest.TempPathFactory) -> Subword:
    return write_subword(tmp_path_factory.mktemp("data") / "subword")


def recipe(folder: Path, source_language: str = "en") -> Recipe:
    data = {
        "train": [{"source": "x", "target": "y"}],
        "folder": str(folder),
        "source_language": source_language,
    }
    return Recipe.model_validate({"name": "small", "data": data})


def test_the_valid_set_is_taken_where_it_is_at_hand(subword: Subword, tmp_path: Path) -> None:
    lines = [f"the dog sees {number} cats" for number in range(200)]
    with building(tmp_path / "held-out/valid/text", kind="held-out text", version=1, fingerprint="") as build:
        for side in ("source", "target"):
            (build.path / f"{side}.txt").write_text("".join(f"{line}\n" for line in lines))
        build.facts = {"name": "valid", "pairs": len(lines)}
    sentences = sample_sentences(recipe(tmp_path, "fr"), subword)
    assert len(sentences) == SENTENCES
    assert subword.source.decode(sentences[0].source) == lines[0]
    assert subword.source.decode(sentences[-1].source) == lines[63 * 3]


def test_english_is_tried_on_built_in_sentences(subword: Subword, tmp_path: Path) -> None:
    sentences = sample_sentences(recipe(tmp_path), subword)
    assert len(sentences) == SENTENCES
    english = {source for source, _ in builtin_pairs(seed=1, split="valid", count=SENTENCES)}
    assert subword.source.decode(sentences[5].source) in english


def test_another_language_is_tried_on_pieces_of_its_own(subword: Subword, tmp_path: Path) -> None:
    sentences = sample_sentences(recipe(tmp_path, "fr"), subword)
    special = subword.source.special
    marks = {special.unk, special.bos, special.eos, special.pad}
    assert len({sentence.source for sentence in sentences}) == SENTENCES
    assert all(0 <= piece < subword.source.pieces for sentence in sentences for piece in sentence.source)
    assert not any(marks & set(sentence.source) for sentence in sentences)
    assert sentences == sample_sentences(recipe(tmp_path, "fr"), subword)
