"""The likeliest pieces are those that PyTorch's own operations find, with the same log-probabilities."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tandem.kernels import pick as module
from tandem.kernels.pick import pick_likeliest
from tandem.translate.beams import FREE, NEVER, pick

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TYPES = [torch.float32, torch.float16] + ([torch.bfloat16] if DEVICE == "cuda" else [])
ROWS = 5


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def distinct_logits(vocabulary: int, dtype: torch.dtype) -> Tensor:
    """No two of a row are equal: of equals PyTorch picks any."""
    generator = torch.Generator().manual_seed(vocabulary)
    rows = [torch.randperm(vocabulary, generator=generator) / 16 - 20 for _ in range(ROWS)]
    return torch.stack(rows).to(DEVICE, dtype)


def mask(banned: list[int], vocabulary: int) -> Tensor:
    banned_V = torch.zeros(vocabulary, dtype=torch.int8, device=DEVICE)
    banned_V[banned] = 1
    return banned_V


def picked(logits: Tensor, forced: list[int], banned: list[int], count: int) -> tuple[Tensor, Tensor]:
    banned_V = mask(banned, logits.shape[1])
    return pick_likeliest(logits, torch.tensor(forced, device=DEVICE), banned_V=banned_V, count=count)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("vocabulary", "count"), [(5, 1), (64, 4), (403, 5), (3, 9)])
def test_pieces_and_odds_are_those_of_plain_operations(
    dtype: torch.dtype, vocabulary: int, count: int
) -> None:
    logits = distinct_logits(vocabulary, dtype)
    banned = sorted({0, vocabulary - 1})
    forced = [FREE, 2, FREE, 0, FREE]  # the second to last is one that is never chosen by itself
    scores, ids = picked(logits, forced, banned, count)
    expected_scores, expected_ids = pick(
        logits, torch.tensor(forced, device=DEVICE), count=count, banned=torch.tensor(banned, device=DEVICE)
    )
    torch.testing.assert_close(scores, expected_scores, rtol=1e-5, atol=1e-5)
    possible = expected_scores > NEVER
    assert torch.equal(ids[possible], expected_ids[possible])
    assert bool(((ids >= 0) & (ids < vocabulary)).all())


def test_what_is_forced_may_lie_anywhere_in_memory() -> None:
    logits = distinct_logits(20, torch.float32)
    forced = torch.tensor([[7]], device=DEVICE).expand(1, ROWS).flatten()
    _, ids = pick_likeliest(logits, forced, banned_V=mask([], 20), count=2)
    assert ids[:, 0].tolist() == [7] * ROWS


def test_of_equals_the_first_is_picked() -> None:
    logits = torch.zeros(ROWS, 37, device=DEVICE)
    _, ids = picked(logits, [FREE] * ROWS, [1], 4)
    assert ids.tolist() == [[0, 2, 3, 4]] * ROWS


@pytest.mark.filterwarnings(
    "ignore:(invalid value|All-NaN):RuntimeWarning"
)  # the interpreter's numpy says so
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_rows_of_a_model_that_has_diverged_have_no_odds_and_ids_within_the_vocabulary(wrong: float) -> None:
    logits = torch.zeros(ROWS, 9, device=DEVICE)
    logits[1:, 4] = wrong
    logits[2, :] = wrong
    scores, ids = picked(logits, [FREE] * ROWS, [], 3)
    assert bool(scores[0].isfinite().all())
    assert not bool(scores[1:].isfinite().any())
    assert bool(((ids >= 0) & (ids < 9)).all())


@pytest.mark.parametrize(("vocabulary", "count"), [(64, 4), (53, 3), (17, 9)])
def test_parts_of_the_vocabulary_together_give_what_the_whole_gives(
    vocabulary: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits = distinct_logits(vocabulary, torch.float32)
    logits[0, 16:32] = NEVER  # nothing in one of the parts
    forced = [FREE, FREE, vocabulary - 1, FREE, FREE]
    whole = picked(logits, forced, [0, 20 % vocabulary], count)
    monkeypatch.setattr(module, "_BLOCK", 16)
    parts = picked(logits, forced, [0, 20 % vocabulary], count)
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-5, atol=1e-5)
    possible = whole[0] > NEVER
    assert torch.equal(parts[1][possible], whole[1][possible])


def test_of_equals_in_several_parts_the_first_is_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 8)
    _, ids = picked(torch.zeros(ROWS, 20, device=DEVICE), [FREE] * ROWS, [0, 2], 3)
    assert ids.tolist() == [[1, 3, 4]] * ROWS


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU: the interpreter is slow")
@pytest.mark.parametrize("vocabulary", [32_000, 32_003, 70_000])
def test_large_vocabularies_give_what_plain_operations_give(vocabulary: int) -> None:
    logits = distinct_logits(vocabulary, torch.float32)
    forced = [FREE, 5, FREE, FREE, FREE]
    scores, ids = picked(logits, forced, [0, 1], 8)
    expected = pick(
        logits, torch.tensor(forced, device=DEVICE), count=8, banned=torch.tensor([0, 1], device=DEVICE)
    )
    torch.testing.assert_close(scores, expected[0], rtol=1e-5, atol=1e-4)
    possible = expected[0] > NEVER
    assert torch.equal(ids[possible], expected[1][possible])
