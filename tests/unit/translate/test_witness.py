"""What a model says of given translations."""

import math

import pytest
import torch
from tests.unit.translate.small_model import SECTION, SENTENCES
from torch import Tensor

from tandem.data.subword.learn import Subword
from tandem.model import Transformer
from tandem.translate.marks import Marks
from tandem.translate.witness import pad_rows, question

MARKS = Marks(start=1, end=2)


def encoded(subword: Subword, text: str) -> tuple[int, ...]:
    return tuple(subword.source.encode([text]).ids.tolist())


def attention_by_hand(model: Transformer, source: tuple[int, ...], target: tuple[int, ...]) -> Tensor:
    """[T, S]: the mean over heads and layers, from what the projections give out."""
    seen: dict[str, list[Tensor]] = {"query": [], "key": []}
    hooks = []
    for layer in model.decoder:
        hooks += [
            layer.cross_attention.query.register_forward_hook(lambda *told: seen["query"].append(told[2][0])),
            layer.cross_attention.key_value.register_forward_hook(
                lambda *told: seen["key"].append(told[2][0])
            ),
        ]
    sides = ([*source, 2], [1, *target])
    with torch.no_grad():
        model(*(pad_rows([side], pad=3, device=torch.device("cpu")) for side in sides))
    for hook in hooks:
        hook.remove()
    width = SECTION.width // SECTION.heads
    looks = []
    for query, key in zip(seen["query"], seen["key"], strict=True):
        for head in range(SECTION.heads):
            part = slice(head * width, (head + 1) * width)
            looks.append((query[:, part] @ key[:, part].T / math.sqrt(width)).softmax(-1))
    return torch.stack(looks).mean(0)


def test_pieces_are_aligned_with_what_all_heads_looked_at_most_but_for_the_end_mark(
    model: Transformer, subword: Subword
) -> None:
    pairs = [(encoded(subword, SENTENCES[0]), encoded(subword, SENTENCES[1])), ((300,), (301, 302))]
    told = question(model, pairs, marks=MARKS)
    for (source, target), testimony in zip(pairs, told, strict=True):
        looks_TS = attention_by_hand(model, source, target)[: len(target), : len(source)]
        assert testimony.alignment == tuple(looks_TS.argmax(1).tolist())
    assert len(set(told[0].alignment)) > 1


def test_a_translation_without_pieces_has_the_end_marks_score_alone(model: Transformer) -> None:
    (told,) = question(model, [((300,), ())], marks=MARKS)
    assert told.alignment == ()
    assert len(told.token_scores) == 1


def test_the_model_is_left_as_it_was(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    question(model, [((300,), (301,))], marks=MARKS)
    monkeypatch.setattr(model, "logits", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        question(model, [((300,), (301,))], marks=MARKS)
    assert not any(layer.cross_attention._forward_pre_hooks for layer in model.decoder)
