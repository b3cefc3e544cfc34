import pytest

from tandem.errors import TandemError
from tandem.train.fit import LARGEST_TOKENS, STEP_TOKENS, largest_that


@pytest.mark.parametrize("limit", [256, 300, 1024, 5000, 55_555])
def test_the_largest_batch_that_fits_is_found_less_a_reserve(limit: int) -> None:
    found = largest_that(lambda tokens: tokens <= limit, least=256)
    assert found <= limit
    assert found >= max(256, 0.9 * limit - 2 * STEP_TOKENS)
    assert found % STEP_TOKENS == 0


def test_a_huge_memory_ends_the_search() -> None:
    assert largest_that(lambda _: True, least=256) <= LARGEST_TOKENS


def test_few_batches_are_tried() -> None:
    tried: list[int] = []

    def fits(tokens: int) -> bool:
        tried.append(tokens)
        return tokens <= 30_000

    largest_that(fits, least=256)
    assert len(tried) < 20


def test_a_longest_sentence_that_does_not_fit_is_said() -> None:
    with pytest.raises(TandemError, match="A batch of 512 tokens, which the longest sentences need"):
        largest_that(lambda _: False, least=512)
