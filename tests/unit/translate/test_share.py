import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.translate.share import put_back, share_of

Lengths = st.lists(st.integers(0, 300), max_size=60)
Ranks = st.integers(1, 9)


@given(lengths=Lengths, ranks=Ranks)
def test_every_sentence_goes_to_one_rank(lengths: list[int], ranks: int) -> None:
    shares = [share_of(lengths, rank, ranks) for rank in range(ranks)]
    assert sorted(number for share in shares for number in share) == list(range(len(lengths)))


@given(lengths=Lengths, ranks=Ranks)
def test_ranks_get_equal_numbers_and_nearly_equal_lengths(lengths: list[int], ranks: int) -> None:
    shares = [share_of(lengths, rank, ranks) for rank in range(ranks)]
    counts = [len(share) for share in shares]
    sums = [sum(lengths[number] for number in share) for share in shares]
    assert max(counts) - min(counts) <= 1
    assert max(sums) - min(sums) <= max(lengths, default=0)


@given(lengths=Lengths, ranks=Ranks)
def test_results_of_all_ranks_come_back_in_order(lengths: list[int], ranks: int) -> None:
    gathered = [[f"sentence {number}" for number in share_of(lengths, rank, ranks)] for rank in range(ranks)]
    assert put_back(gathered, lengths) == [f"sentence {number}" for number in range(len(lengths))]


def test_a_missing_result_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="shorter"):
        put_back([["a"], ["b"]], [3, 2, 1])
