import math
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.translate.small_model import SENTENCES

from tandem.data.shards.ragged import Ragged
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SegmentedModel
from tandem.errors import TandemError
from tandem.model import PaddedTokens, Transformer
from tandem.translate.beam import Hypothesis
from tandem.translate.penalty import LengthPenalty
from tandem.translate.translator import Row, Translation, Translator, most_target_pieces

CPU = torch.device("cpu")
LINES = ["a", *SENTENCES[:2], "", f"{SENTENCES[2]} {SENTENCES[3]}"]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


@pytest.mark.parametrize("beam", [1, 4])
def test_lines_keep_their_order_and_translation_however_they_are_batched(
    model: Transformer, subword: Subword, beam: int
) -> None:
    alone, some, all_together = (
        Translator(model, subword, device=CPU, beam=beam, batch_tokens=tokens) for tokens in (1, 60, 10_000)
    )
    expected = texts(alone.translate(LINES))
    assert len(set(expected)) == len(LINES)
    assert texts(some.translate(LINES)) == expected
    assert texts(all_together.translate(LINES[::-1])) == expected[::-1]


def test_what_does_not_fit_into_memory_is_searched_in_halves(
    model: Transformer, subword: Subword, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator(model, subword, device=CPU, batch_tokens=10_000)
    expected = texts(translator.translate(LINES))
    search, sizes = Translator._search_batch, []

    def short_of_memory(self: Translator, rows: list[Row], most: int) -> list[list[Hypothesis]]:
        sizes.append(len(rows))
        if len(rows) > most:
            raise torch.OutOfMemoryError
        return search(self, rows)

    monkeypatch.setattr(Translator, "_search_batch", partialmethod(short_of_memory, most=1))
    assert texts(translator.translate(LINES)) == expected
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    monkeypatch.setattr(Translator, "_search_batch", partialmethod(short_of_memory, most=0))
    with pytest.raises(torch.OutOfMemoryError):
        translator.translate(LINES)


def test_a_score_is_the_models_own_log_probability_over_the_penalty(
    model: Transformer, subword: Subword
) -> None:
    penalty = LengthPenalty(alpha=1, kind="power")
    pieces = subword.source.encode([SENTENCES[0]]).ids.tolist()
    translator = Translator(model, subword, device=CPU, beam=3, length_penalty=penalty)
    found = translator._search_batch([np.array(pieces)])[0][0]
    source = PaddedTokens(ids=torch.tensor([[*pieces, 2]]), lengths=torch.tensor([len(pieces) + 1]))
    target = PaddedTokens(ids=torch.tensor([[1, *found.ids]]), lengths=torch.tensor([len(found.ids) + 1]))
    with torch.no_grad():
        odds = model.logits(model(source, target))[0].log_softmax(-1)
    total = sum(odds[place, piece] for place, piece in enumerate([*found.ids, 2]))
    assert found.score == pytest.approx(float(total) / (len(found.ids) + 1), rel=1e-4)


def test_a_wider_beam_never_scores_worse_than_the_same_found_greedily(
    model: Transformer, subword: Subword
) -> None:
    line = [SENTENCES[3]]
    scores = [Translator(model, subword, device=CPU, beam=beam).translate(line)[0].score for beam in (1, 16)]
    assert scores[0] <= scores[1] < 0


def test_the_next_best_are_at_hand(model: Transformer, subword: Subword) -> None:
    (found,) = Translator(model, subword, device=CPU, beam=4, best=3).translate([SENTENCES[0]])
    assert len(found.others) == 2
    assert found.score >= found.others[0].score >= found.others[1].score
    (alone,) = Translator(model, subword, device=CPU, beam=4).translate([SENTENCES[0]])
    assert (alone.text, alone.score, alone.pieces) == (found.text, found.score, found.pieces)
    assert alone.others == ()


def test_empty_lines_stay_empty_and_no_line_gives_nothing(model: Transformer, subword: Subword) -> None:
    translator = Translator(model, subword, device=CPU)
    assert translator.translate(["", " "]) == [Translation(text="", score=0.0, pieces=0)] * 2
    assert translator.translate([]) == []


def test_encoded_sentences_are_translated_like_their_text(model: Transformer, subword: Subword) -> None:
    translator = Translator(model, subword, device=CPU)
    assert translator.translate_ids(subword.source.encode(LINES)) == translator.translate(LINES)


def test_a_line_over_the_limit_is_named_and_never_cut(model: Transformer, subword: Subword) -> None:
    lines = ["a", "b " * 1_025]
    with pytest.raises(TandemError, match=r"Line 2 has [12],\d+ pieces, but at most 1,024 .*split"):
        Translator(model, subword, device=CPU).translate(lines)
    with pytest.raises(TandemError, match=r"Line 12 has"):
        Translator(model, subword, device=CPU).translate(lines, first_line=11)


def test_a_translation_ends_at_its_limit(model: Transformer, subword: Subword) -> None:
    ids = np.full(3, 100)
    (found,) = Translator(model, subword, device=CPU).translate_ids(Ragged(ids=ids, lengths=np.array([3])))
    assert 0 < found.pieces <= most_target_pieces(3) == 24


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_restored_and_it_can_learn_afterwards(
    model: Transformer, subword: Subword, training: bool
) -> None:
    model.train(training)
    first = Translator(model, subword, device=CPU).translate(LINES)
    assert first == Translator(model, subword, device=CPU).translate(LINES)  # no dropout
    assert all(module.training is training for module in model.modules())
    tokens = PaddedTokens(ids=torch.tensor([[5, 6, 2]]), lengths=torch.tensor([3]))
    model(tokens, tokens).sum().backward()
    assert model.target_embedding.grad is not None


def test_the_mode_is_restored_after_an_error(model: Transformer, subword: Subword) -> None:
    model.train()
    outside = Ragged(ids=np.array([10**6]), lengths=np.array([1]))
    with pytest.raises(IndexError):
        Translator(model, subword, device=CPU).translate_ids(outside)
    assert model.training


def test_lines_are_mended_as_the_training_text_was(model: Transformer, subword: Subword) -> None:
    plain = Translator(model, subword, device=CPU)
    mending = Translator(model, subword, device=CPU, mend=lambda line: line.replace("_", " "))
    assert mending.translate(["the_cat_sleeps"]) == plain.translate(["the cat sleeps"])


def test_a_model_that_has_diverged_says_nothing(model: Transformer, subword: Subword) -> None:
    model.target_embedding.data.fill_(math.nan)
    (found,) = Translator(model, subword, device=CPU).translate(["a"])
    assert (found.text, found.score) == ("", -math.inf)


def test_a_line_break_spelled_in_bytes_does_not_part_the_line(subword: Subword, model: Transformer) -> None:
    word, *breaks = (
        next(piece for piece in range(4, 300) if subword.target.decode([piece]) == spelled)
        for spelled in ("a", "\n", "\r")
    )
    text = Translator(model, subword, device=CPU)._text([word, *breaks, word])
    assert text.splitlines() == [text]


def test_marks_and_rows_without_a_piece_are_never_said(subword: Subword, model: Transformer) -> None:
    banned = Translator(model, subword, device=CPU)._marks.banned
    assert set(banned) == {0, 1, 3, *range(403, 408)}


def test_segmented_text_may_say_that_a_word_is_unknown(tmp_path: Path, model: Transformer) -> None:
    path = tmp_path / "subword.txt"
    path.write_text("<unk>\n<s>\n</s>\n<pad>\ndas\nHau@@\ns\nist\n")
    segmented = SegmentedModel(path)
    translator = Translator(model, Subword(source=segmented, target=segmented), device=CPU)
    assert set(translator._marks.banned) == {1, 3, *range(8, 408)}
    assert set(translator.translate(["das Hau@@ s"])[0].text.replace(" ", "")) <= set("<unk>dasHauist@")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_gives_the_same_translations(model: Transformer, subword: Subword) -> None:
    on_cpu = Translator(model, subword, device=CPU).translate(LINES)
    cuda = torch.device("cuda")
    on_gpu = Translator(model.to(cuda), subword, device=cuda).translate(LINES)
    assert texts(on_gpu) == texts(on_cpu)
