from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.subword import words
from tandem.data.subword.model import SegmentedModel, SentencePieceModel, padded
from tandem.errors import TandemError

SENTENCES = [
    "Die Katze schläft auf dem warmen Dach.",
    "The cat sleeps on the warm roof.",
    "Der Hund läuft schnell durch den großen Garten.",
    "The dog runs quickly through the big garden.",
    "Wir haben gestern drei Bücher gelesen.",
    "We read three books yesterday.",
] * 5

Train = Callable[..., Path]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    def trained(**options: Any) -> Path:
        folder = tmp_path_factory.mktemp("model")
        settings: dict[str, Any] = {
            "vocab_size": 400,
            "model_type": "bpe",
            "byte_fallback": True,
            "minloglevel": 2,
        }
        settings |= {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": 3}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES), model_prefix=str(folder / "m"), **(settings | options)
        )
        return folder / "m.model"

    return trained


@pytest.fixture(scope="session")
def bpe(train: Train) -> Path:
    return train()


@pytest.fixture(scope="session")
def unigram(train: Train) -> Path:
    return train(model_type="unigram", vocab_size=320)


def rows(model: SentencePieceModel | SegmentedModel, sentences: Sequence[str]) -> list[list[int]]:
    encoded = model.encode(sentences)
    return [row.tolist() for row in np.split(encoded.ids, np.cumsum(encoded.lengths)[:-1])]


def test_decoding_gives_the_sentence_back_without_marks(bpe: Path) -> None:
    model = SentencePieceModel(bpe)
    ids = rows(model, SENTENCES)[0]
    marks = model.special
    assert model.decode([marks.bos, *ids, marks.eos, marks.pad]) == SENTENCES[0]
    assert "".join(model.spell([*ids, marks.eos])).replace("▁", " ").strip() == SENTENCES[0]


def test_characters_without_a_piece_are_spelled_in_bytes(bpe: Path) -> None:
    model = SentencePieceModel(bpe)
    assert model.decode(rows(model, ["Ein 🦊 und ein 語"])[0]) == "Ein 🦊 und ein 語"
    assert model.special.unk not in rows(model, ["Ein 🦊"])[0]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(data=st.data())
def test_word_by_word_gives_the_same_ids_for_any_text(
    kind: str, data: st.DataObject, bpe: Path, unigram: Path
) -> None:
    path = bpe if kind == "bpe" else unigram
    text = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)
    known = st.lists(st.sampled_from(" ".join(SENTENCES).split()), max_size=8).map(" ".join)
    sentences = data.draw(st.lists(st.one_of(text, known), min_size=1, max_size=5))
    assert rows(SentencePieceModel(path, by_word=True), sentences) == rows(
        SentencePieceModel(path), sentences
    )


@pytest.mark.parametrize(
    "sentence",
    ["", " ", "a  b", " a", "a ", "a \u0301b", "\u0308", "a\u00a0b", "ﬁne ½ …", "x ▁ y", "a\u2581b"],
)
def test_word_by_word_gives_the_same_ids_in_odd_corners(bpe: Path, sentence: str) -> None:
    assert rows(SentencePieceModel(bpe, by_word=True), [sentence]) == rows(
        SentencePieceModel(bpe), [sentence]
    )


def test_the_memory_for_words_is_bounded_and_forgetting_changes_nothing(
    bpe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "WORDS_REMEMBERED", 3)
    model = SentencePieceModel(bpe, by_word=True)
    assert rows(model, SENTENCES) == rows(SentencePieceModel(bpe), SENTENCES)
    assert model._words is not None
    assert len(model._words) <= 3


def test_a_model_whose_pieces_reach_over_spaces_is_recognised(bpe: Path, train: Train) -> None:
    across = train(split_by_whitespace=False, vocab_size=420)
    assert SentencePieceModel(across).has_inner_spaces()
    assert not SentencePieceModel(bpe).has_inner_spaces()


def test_marks_that_a_model_lacks_get_ids_of_their_own(train: Train) -> None:
    model = SentencePieceModel(train(bos_id=-1, pad_id=-1, eos_id=1))
    assert (model.special.unk, model.special.eos) == (0, 1)
    assert {model.special.bos, model.special.pad} == {400, 401}
    assert model.pieces == 402
    ids = rows(model, SENTENCES)[0]
    assert model.decode([model.special.bos, *ids, model.special.eos, model.special.pad]) == SENTENCES[0]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.model").write_bytes(b"not a model")
    with pytest.raises(TandemError, match="not a SentencePiece model"):
        SentencePieceModel(tmp_path / "x.model")


def test_the_vocabulary_is_padded_to_a_multiple_of_eight() -> None:
    assert [padded(size) for size in (1, 8, 9, 32_768, 37_001)] == [8, 8, 16, 32_768, 37_008]


@pytest.fixture
def segmented(tmp_path: Path) -> SegmentedModel:
    path = tmp_path / "subword.txt"
    path.write_text("<unk>\n<s>\n</s>\n<pad>\ndas\nHau@@\ns\nist\n")
    return SegmentedModel(path)


def test_segmented_text_passes_through(segmented: SegmentedModel) -> None:
    assert rows(segmented, ["das Hau@@ s ist groß", ""]) == [[4, 5, 6, 7, 0], []]
    assert rows(segmented, ["das </s> <pad> <s> <unk>"]) == [[4, 0, 0, 0, 0]]
    assert segmented.decode([1, 4, 5, 6, 7, 2, 3]) == "das Haus ist"
    assert segmented.count_words("das Hau@@ s ist") == 3
