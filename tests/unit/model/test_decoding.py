"""Decoding step by step says what the whole forward pass says."""

from typing import Any

import pytest
import torch
from tests.unit.model.sentences import VARIANTS, padded, sentences, small_model
from torch import Tensor

from tandem.model import DecodingCache, Transformer

STEPS = 40
"""More than one block of the cache."""


def start(
    model: Transformer, source: list[Tensor], *, beam: int = 1, max_steps: int = STEPS
) -> DecodingCache:
    return model.start(model.encode(padded(source)), max_steps=max_steps, beam=beam)


def whole(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    states: Tensor = model(padded([source]), padded([target]))
    return states[0]


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("lengths", [[4, 4, 4], [3, 5, 1]], ids=["no padding", "padding"])
def test_steps_equal_the_forward_pass(settings: dict[str, Any], lengths: list[int]) -> None:
    model = small_model(**settings).eval()
    source, target = sentences(lengths), torch.stack(sentences([STEPS] * 3, seed=2))
    cache = start(model, source)
    stepped = torch.stack([model.step(target[:, place], cache) for place in range(STEPS)], dim=1)
    together = model(padded(source), padded(list(target)))
    torch.testing.assert_close(stepped, together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_selected_rows_go_on_from_their_own_past(settings: dict[str, Any]) -> None:
    model = small_model(**settings).eval()
    source, target = sentences([3, 5, 2]), sentences([6, 6, 6], seed=2)
    cache = start(model, source)
    for place in range(4):
        model.step(torch.stack([row[place] for row in target]), cache)
    picked = [2, 0, 0, 2]
    cache.select(torch.tensor(picked))
    assert cache.rows == 4
    for place in (4, 5):
        states = model.step(torch.stack([target[row][place] for row in picked]), cache)
        expected = torch.stack([whole(model, source[row], target[row][: place + 1])[-1] for row in picked])
        torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_beams_swap_rows_and_sentences_leave(settings: dict[str, Any]) -> None:
    model = small_model(**settings).eval()
    source = sentences([3, 5, 2])
    cache = start(model, source, beam=2)
    hypotheses = sentences([1] * 6, seed=2)
    owners = [0, 0, 1, 1, 2, 2]

    def step() -> None:
        states = model.step(torch.stack([row[-1] for row in hypotheses]), cache)
        expected = [
            whole(model, source[owner], row)[-1] for owner, row in zip(owners, hypotheses, strict=True)
        ]
        torch.testing.assert_close(states, torch.stack(expected), rtol=1e-4, atol=1e-5)

    def grow(picked: list[int]) -> None:
        words = sentences([1] * len(picked), seed=len(hypotheses[0]) + 7)
        grown = [torch.cat((hypotheses[row], word)) for row, word in zip(picked, words, strict=True)]
        owners[:] = [owners[row] for row in picked]
        hypotheses[:] = grown

    step()
    swapped = [1, 1, 2, 3, 5, 4]
    cache.select(torch.tensor(swapped), same_sentences=True)
    grow(swapped)
    step()
    left = [5, 4, 0, 0]
    cache.select(torch.tensor(left))
    grow(left)
    step()


def test_a_step_past_the_room_that_was_asked_for_is_refused() -> None:
    model = small_model().eval()
    cache = start(model, sentences([3]), max_steps=2)
    for _ in range(2):
        model.step(torch.tensor([5]), cache)
    with pytest.raises(ValueError, match="2 steps"):
        model.step(torch.tensor([5]), cache)


def test_logits_are_states_times_the_output_weight() -> None:
    model = small_model(tied="none")
    states = torch.randn(3, 16, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model.logits(states), states @ model.output_weight.T)
